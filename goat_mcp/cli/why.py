"""`goat-mcp why`: what would be decided about a call, and which rule in which file decides it. Nothing runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import click

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import OK, TOOL_ERROR
from goat_mcp.cli.flags import json_object, key_value_pairs, typed_arguments
from goat_mcp.cli.listing import QUIET
from goat_mcp.cli.terminal import escaped
from goat_mcp.cli.waiting import waiting_for
from goat_mcp.core.rights import LOCAL, OPERATOR

if TYPE_CHECKING:  # a command's machinery is loaded when it runs
    from goat_mcp.gateway.gateway import Gateway


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("tool")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[KEY=VALUE]...")
@click.option("--input-json", metavar="JSON", help="All arguments as one JSON object.")
@click.option("--http", is_flag=True, help="As it is decided for a client over HTTP, which is asked by a form.")
@flags.selection
@flags.as_json
def why(
    tool: str, arguments: Sequence[str], input_json: str | None, http: bool, as_json: bool, **selection: Any
) -> int:
    """Explain what would happen to a call: allowed, asked about or denied, by which rule, and in which file.

    Hooks are not run; they can only make it stricter. Exit status: 0 allowed or asked about, 5 denied.
    """
    flags.check_is_name(tool)
    settings = flags.settings_from(**selection, defaults=QUIET)
    flags.say_notices(settings)
    given = json_object(input_json) if input_json is not None else {}
    texts = key_value_pairs(arguments)
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.gateway.rules.explained import explained_lines

    gateway = Gateway(settings, approval=Approval.ELICIT if http else Approval.HOST)
    facts = anyio.run(_explain, gateway, tool, given, texts, OPERATOR if http else LOCAL)
    if as_json:
        click.echo(json.dumps(facts))
    else:
        first, *more = explained_lines(facts)
        click.echo(escaped("\n".join((first, *(f"  {line}" for line in more)))))
    return TOOL_ERROR if facts["effect"] == "deny" else OK


async def _explain(
    gateway: Gateway, name: str, given: Mapping[str, Any], texts: Mapping[str, str], principal: str
) -> dict[str, Any]:
    from goat_mcp.gateway.rules.explained import explained

    async with gateway.running():
        if gateway.registry.get(name) is None:
            with waiting_for(f"waiting for the server of {name} to start"):
                await gateway.upstreams.until_started(name)
        return await explained(gateway, name, lambda schema: {**given, **typed_arguments(texts, schema)}, principal)
