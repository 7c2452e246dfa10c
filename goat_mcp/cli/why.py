"""`goat-mcp why`: what would be decided about a call, and which rule in which file decides it. Nothing runs."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import anyio
import click

from goat_mcp.calls.permissions.approval import narrowest_rules
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import OK, TOOL_ERROR
from goat_mcp.cli.flags import json_object, key_value_pairs, typed_arguments
from goat_mcp.cli.listing import QUIET
from goat_mcp.cli.rule_words import commands_that_change
from goat_mcp.cli.terminal import escaped
from goat_mcp.cli.waiting import waiting_for
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.rights import LOCAL, OPERATOR
from goat_mcp.core.tool import ChecksInput

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

    gateway = Gateway(settings, approval=Approval.ELICIT if http else Approval.HOST)
    facts = anyio.run(_explain, gateway, tool, given, texts, OPERATOR if http else LOCAL)
    if as_json:
        click.echo(json.dumps(facts))
    else:
        _print(facts)
    return TOOL_ERROR if facts["effect"] == "deny" else OK


async def _explain(
    gateway: Gateway, name: str, given: Mapping[str, Any], texts: Mapping[str, str], principal: str
) -> dict[str, Any]:
    from goat_mcp.gateway.build.rule_loading import origin_of

    # A client whose session has been granted nothing yet.
    ctx = ToolContext(call_id=secrets.token_hex(8), session_key="stdio", principal=principal)
    async with gateway.running():
        if gateway.registry.get(name) is None:
            with waiting_for(f"waiting for the server of {name} to start"):
                await gateway.upstreams.until_started(name)
        about: dict[str, Any] = {}
        try:
            tool = gateway.catalog.resolve(name)
            about = {"tool_risk": tool.spec.risk.name.lower(), "effects": list(tool.spec.effects)}
            arguments = {**given, **typed_arguments(texts, tool.spec.input_schema)}
            if isinstance(tool, ChecksInput):
                await tool.checked(tool.validate(arguments))
            call, decision = gateway.pipeline.admission.decide(name, arguments, ctx)
        except ToolError as refused:
            return {
                "tool": name,
                "effect": "deny",
                "reason": refused.message,
                "code": str(refused.code),
                "suggestion": refused.suggestion,
                **about,
            }
    permission = gateway.pipeline.permission
    facts: dict[str, Any] = {
        "tool": call.spec.rule_name,
        "effect": decision.effect.value,
        "reason": decision.explanation,
        "mode": permission.modes.default.value,
        "risk": call.spec.risk.name.lower(),
        **about,
    }
    if decision.rule is not None:
        facts["rule"] = decision.rule.text
    if origin := origin_of(gateway.settings, decision):
        facts["origin"] = origin
    if decision.effect.value == "ask":
        asks_form = decision.by_rule or permission.approval.value == "elicit"
        facts["answered_by"] = "a form of ours" if asks_form else permission.approval.value
    plans = decision.reason == "mode plan"  # which no rule lifts
    if decision.effect.value != "allow" and not decision.by_rule and not plans:
        facts["would_be_allowed_by"] = list(narrowest_rules(call))
    facts["changed_by"] = commands_that_change(call, decision)
    return facts


_WORDS = {"allow": "allowed", "ask": "asked about", "deny": "denied"}


def _print(facts: Mapping[str, Any]) -> None:
    by = ": " if "code" in facts else ", by "
    click.echo(escaped(f"{facts['tool']}: {_WORDS[facts['effect']]}{by}{facts['reason']}"))
    if facts.get("suggestion"):
        click.echo(escaped(f"  {facts['suggestion']}"))
    if "origin" in facts:
        click.echo(escaped(f"  written in {facts['origin']}"))
    if "answered_by" in facts:
        click.echo(escaped(f"  who answers: {facts['answered_by']}"))
    for command in facts.get("changed_by", ()):
        click.echo(escaped(f"  to change that: {command}"))
    if "risk" in facts:
        of_this = f" (this call: {facts['risk']})" if facts["risk"] != facts["tool_risk"] else ""
        effects = ", ".join(facts["effects"])
        click.echo(escaped(f"  mode {facts['mode']}, risk {facts['tool_risk']}{of_this}; the tool {effects}"))
