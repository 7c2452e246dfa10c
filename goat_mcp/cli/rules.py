"""`goat-mcp rules`: the permission rules in force here and where each stands, and taking back what you allowed always.

What was allowed for a session is known to its server alone, and ends with the session.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from goat_mcp.calls.permissions.decide import Decision
from goat_mcp.calls.permissions.mode import Effect
from goat_mcp.calls.permissions.remembered import RememberedRule, RememberedRules
from goat_mcp.cli import flags
from goat_mcp.cli.terminal import escaped
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory


@click.group(invoke_without_command=True)
@flags.selection
@flags.as_json
@click.pass_context
def rules(ctx: click.Context, as_json: bool, **selection: Any) -> None:
    """List the permission rules in force, deny first, and where each of them stands.

    A remembered rule has an id: `goat-mcp rules forget ID` takes it back.
    """
    if ctx.invoked_subcommand is not None:
        return
    settings = flags.settings_from(**selection)
    flags.say_notices(settings)
    found = [*_configured(settings), *(_fields(one) for one in _all(_remembered(settings.workspace)))]
    if as_json:
        click.echo(json.dumps(found))
        return
    for one in found:
        click.echo(escaped(f"{one['effect']}\t{one['rule']}\t{_where(one)}").replace("\n", " "))
    if not found:
        click.echo("No rules: the mode decides.", err=True)


@rules.command()
@click.argument("which", nargs=-1, required=True, metavar="ID|RULE...")
@flags.workspace
@flags.as_json
def forget(which: Sequence[str], workspace: Sequence[str], as_json: bool) -> None:
    """Take back rules that "always" has written down for this workspace; running servers see it with the next call."""
    remembered = _remembered(_workspace_here(workspace))
    known = {name for one in _all(remembered) for name in (one.id, one.rule.text)}
    if unknown := [one for one in which if one not in known]:
        raise ToolError(
            ErrorCode.NOT_FOUND,
            f"no remembered rule {unknown[0]!r:.200} in this workspace",
            "See goat-mcp rules. What stands in a settings file is taken out there.",
        )
    gone: list[RememberedRule] = []
    for one in dict.fromkeys(which):
        try:
            gone += remembered.forget(one)
        except OSError as problem:
            raise ToolError(
                ErrorCode.IO, f"{remembered.path} cannot be written: {problem.strerror or problem}", "Nothing was lost."
            ) from None
    if as_json:
        click.echo(json.dumps([_fields(one) for one in gone]))
    for one in gone if not as_json else ():
        click.echo(escaped(f"forgotten: {one.rule.text}{_place(_fields(one))}"))


def _workspace_here(named: Sequence[str]) -> Sequence[Path]:
    return load_settings({"workspace": named} if named else {}).workspace


def _remembered(workspace: Sequence[Path]) -> RememberedRules:
    from goat_mcp.gateway.build.working_directories import scope_of

    def warn(event: str, **facts: Any) -> None:
        click.echo(escaped(f"goat-mcp: {event}: {facts.get('path')}: {facts.get('problem')}"), err=True)

    return RememberedRules(StateDirectory.default(), scope_of(workspace or (Path.cwd(),)), warn)


def _all(remembered: RememberedRules) -> Sequence[RememberedRule]:
    """Raises `ToolError` where they are there and cannot be read."""
    try:
        return remembered.oldest_first()
    except FileNotFoundError:
        return ()
    except OSError as problem:
        raise ToolError(
            ErrorCode.IO,
            f"{remembered.path} is not used: {problem.strerror or problem}",
            "Take it away, or make it yours alone.",
        ) from None


def _configured(settings: Settings) -> Iterator[dict[str, Any]]:
    from goat_mcp.gateway.build.extensions import claude_settings
    from goat_mcp.gateway.build.rule_loading import origin_of, rules_of

    listed = rules_of(settings, claude_settings(settings))
    for effect, found in ((Effect.DENY, listed.deny), (Effect.ASK, listed.ask), (Effect.ALLOW, listed.allow)):
        for rule in found.rules:
            origin = origin_of(settings, Decision(effect, "", rule=rule))
            yield {"effect": effect.value, "rule": rule.text, "origin": origin}


def _fields(one: RememberedRule) -> dict[str, Any]:
    return {
        "effect": "allow",
        "rule": one.rule.text,
        "origin": one.rule.origin,
        "id": one.id,
        "principal": one.principal,
        "directory": one.rule.directory,
        "remembered_at_s": one.at_s,
    }


def _where(one: dict[str, Any]) -> str:
    if "id" not in one:
        return one["origin"]
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one["remembered_at_s"]))
    return f"remembered {when} as {one['id']}{_place(one)}"


def _place(one: dict[str, Any]) -> str:
    """For whom and where it held, where that is not everywhere and for you."""
    whom = f" for {one['principal']}" if one["principal"] != "local" else ""
    return whom + (f" in {one['directory']}" if one["directory"] else "")
