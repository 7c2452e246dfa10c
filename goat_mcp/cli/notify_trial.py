"""`goat-mcp approvals --test-notify`: a test message to everybody in `approval.notify`, and what came of each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import anyio
import click

from goat_mcp.cli.exit_codes import USAGE
from goat_mcp.cli.terminal import say
from goat_mcp.cli.terminal_user import refuse_if_run_by_a_model
from goat_mcp.core.errors import ToolError

if TYPE_CHECKING:
    from goat_mcp.gateway.approvals.notify.channel import Channel
    from goat_mcp.gateway.gateway import Gateway

SENT = "sent"


def send_test_messages(*, as_json: bool) -> int:
    """The exit code: 1 if a message could not be sent."""
    refuse_if_run_by_a_model("send messages")
    from goat_mcp.calls.permissions.mode import Approval
    from goat_mcp.gateway.approvals.notify.build import configured_channels
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.settings.loading import load_settings

    gateway = Gateway(load_settings({"log_level": "error"}), approval=Approval.DENY)
    channels = configured_channels(gateway.settings.approval.notify, gateway.services).channels
    results = anyio.run(_results, gateway, channels)
    if as_json:
        click.echo(json.dumps([{"entry": place, "result": result} for place, result in results]))
    for place, result in () if as_json else results:
        say(f"{place}: {result}")
    if not results and not as_json:
        say("approval.notify names nobody: nothing was sent. For the desktop, put this into your settings:")
        say("approval: {notify: [{desktop: true}]}")
    return 0 if all(result == SENT for _, result in results) else USAGE


async def _results(gateway: Gateway, channels: Sequence[tuple[str, Channel]]) -> list[tuple[str, str]]:
    async with gateway.running():
        return [(place, gateway.redactor.text(await _result(channel))) for place, channel in channels]


async def _result(channel: Channel) -> str:
    try:
        await channel.check()
        await channel.send_test()
    except ToolError as failed:
        return f"failed: {failed.message}. {failed.suggestion}"
    return SENT
