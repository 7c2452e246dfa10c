"""The catalog as a client with these flags would see it, for the commands that print it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:  # a command's machinery is loaded when it runs
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.settings.settings import Settings

LIST_WAIT_S = 15.0
"""A client must have its list at once and hears of the rest later; a person at a terminal has this one chance."""


def complete_catalog(settings: Settings) -> Gateway:
    """A gateway that has listed its upstreams, and has stopped again: its catalog is read, nothing is called."""
    import anyio

    from goat_mcp.calls.permissions.mode import Approval
    from goat_mcp.cli.flags import say_notices
    from goat_mcp.gateway.gateway import Gateway

    say_notices(settings)
    gateway = Gateway(settings, approval=Approval.DENY)
    anyio.run(_list_upstreams, gateway)
    return gateway


async def _list_upstreams(gateway: Gateway) -> None:
    async with gateway.running():
        await gateway.upstreams.first_list(LIST_WAIT_S)


def print_problems(gateway: Gateway) -> None:
    """A line on stderr for each upstream or name that something is wrong with."""
    for problem in gateway.problems():
        click.echo(f"{problem['name']}: {problem['reason_code']}: {problem['detail']}", err=True)
