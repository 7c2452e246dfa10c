"""`goat-mcp lock`: what is pinned of each upstream, what has changed since, and the user's word on it."""

from __future__ import annotations

import json
import shlex
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
import click

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.cli import flags
from goat_mcp.cli.approve import BY
from goat_mcp.cli.exit_codes import OK, UNREACHABLE, USAGE
from goat_mcp.cli.listing import listing, waiting_view
from goat_mcp.cli.terminal import confirmed, escaped, say
from goat_mcp.cli.terminal_user import refuse_if_run_by_a_model
from goat_mcp.cli.waiting import waiting_for
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.config.upstream_files import load_upstream_files
from goat_mcp.upstreams.listing.suspicious_texts import why_suspicious

if TYPE_CHECKING:  # loaded when a subcommand runs
    from goat_mcp.upstreams.pinning.pin_lock import PinLock, PinnedDefinitions
    from goat_mcp.upstreams.pinning.pin_review import Comparison, Suspicious, Waiting


@click.group(invoke_without_command=True)
@flags.selection
@click.option("--check", is_flag=True, help="Ask every upstream, compare, change nothing; exit 1 if one differs.")
@flags.as_json
@click.pass_context
def lock(context: click.Context, check: bool, as_json: bool, **selection: Any) -> int | None:
    """Show what is pinned of your MCP servers in goat.lock, and what waits for your approval.

    What a server offers is pinned when it is first seen. When it changes, the catalog goes on showing what was pinned,
    and calls of it are refused until you approve the change.
    """
    if context.invoked_subcommand is not None:
        if check:
            raise click.UsageError("--check stands alone: goat-mcp lock --check")
        return None
    settings = flags.settings_from(**selection)
    flags.say_notices(settings)
    if check:
        return _check(settings, as_json)
    _list(as_json, _unpinned_launches(settings), _configured_names(settings))
    return None


@lock.command("list")
@flags.as_json
def list_pins(as_json: bool) -> None:
    """Show for each upstream how much is pinned and what waits."""
    _list(as_json, {})


@lock.command()
@click.argument("name")
@flags.selection
@flags.as_json
def show(name: str, as_json: bool, **selection: Any) -> None:
    """Compare what waits with what is pinned. NAME is an upstream, a tool (mcp__server__tool) or kind:server:name.

    If nothing waits under that name, the servers are asked first what they offer now. What is pinned and has a
    suspicious text is shown whole.
    """
    from goat_mcp.upstreams.pinning.pin_review import agreement, meant_by

    pins, definitions = _stores()
    waiting = _waiting(pins, (name,), selection)
    # What is pinned already is shown too, if there is a reason to read it.
    suspicious = [one for one in _suspicious(pins, definitions) if not one.waits]
    meant = meant_by(name, [one.about for one in suspicious])
    chosen = _chosen((name,), waiting) if not meant else meant_by(name, waiting)
    if as_json:
        document = {"waiting": [_document(one, definitions) for one in chosen], "hash": agreement(chosen)}
        click.echo(json.dumps({**document, "suspicious": [_document(one, definitions) for one in meant]}))
        return
    for one in meant:
        _print_suspicious(one, definitions)
    if not chosen:
        return
    _print_differences(chosen, definitions)
    say(f"Approve with: goat-mcp lock approve {shlex.quote(name)}")


@lock.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Everything that waits.")
@click.option(
    "--yes",
    "agreed_hash",
    metavar="HASH",
    help="Approve what has this hash without asking (for scripts).",
)
@flags.selection
@flags.as_json
def approve(names: tuple[str, ...], everything: bool, agreed_hash: str | None, as_json: bool, **selection: Any) -> None:
    """Show what has changed, and pin exactly that if you agree. Running servers see it within two seconds."""
    from goat_mcp.upstreams.pinning import pin_review

    if everything == bool(names):
        raise click.UsageError("name what to approve, or give --all")
    pins, definitions = _stores()
    waiting = _waiting(pins, names, selection)
    seen_at_s = time.time()
    content = pins.content()
    chosen = waiting if everything else _chosen(names, waiting)
    if not chosen and not content.distrust:
        click.echo(json.dumps({"approved": []}) if as_json else "Nothing waits for approval.")
        return
    agreed = pin_review.agreement(chosen)
    if not as_json:
        _print_differences(chosen, definitions)
    refuse_if_run_by_a_model("approve what a server changed")
    if agreed_hash is None:
        _ask(names, everything, agreed, as_json)
    elif agreed_hash != agreed:
        _refuse(f"what waits is not what you name: its hash is {agreed}", "Look at it again: goat-mcp lock show NAME")
    try:
        anyio.run(_approve, pins, chosen, everything, seen_at_s)
    except pin_review.ChangedMeanwhile:
        _refuse("it has changed again meanwhile; nothing was approved", "Look at it again: goat-mcp lock show NAME")
    if as_json:
        click.echo(json.dumps({"approved": [one.target for one in chosen]}))
    else:
        say(f"Approved: {', '.join(one.target for one in chosen) or 'what comes next is trusted again'}")


async def _approve(pins: PinLock, chosen: Sequence[Waiting], everything: bool, seen_at_s: float) -> None:
    """Raises `DecidedBefore`, `ChangedMeanwhile`; then nothing was approved."""
    from goat_mcp.gateway.approvals.user_queue import UserQueue
    from goat_mcp.upstreams.pinning import pin_review

    user = UserQueue(StateDirectory.default())
    await user.queue.approve_all(
        user.definitions.requests_for(chosen),
        lambda: pin_review.approve(pins, chosen, everything=everything),
        seen_at_s=seen_at_s,
        by=BY,
    )


def _waiting(pins: PinLock, names: Sequence[str], selection: dict[str, Any]) -> list[Waiting]:
    """What waits; if it is nothing under one of these names, after a look at what the servers offer now."""
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.upstreams.pinning.pin_review import meant_by, waiting_in

    waiting = waiting_in(pins.content())
    if all(meant_by(name, waiting) for name in names):
        return list(waiting)
    settings = flags.settings_from(**selection)
    gateway = Gateway(settings, approval=settings.approval.by or Approval.HOST)

    with waiting_view() as view:
        listing(gateway, view, again=True)
    return list(waiting_in(pins.content()))


def _stores() -> tuple[PinLock, PinnedDefinitions]:
    from goat_mcp.upstreams.pinning.pin_lock import PinLock, PinnedDefinitions

    state = StateDirectory.default()
    return PinLock(state), PinnedDefinitions(state)


def _chosen(names: Sequence[str], waiting: Sequence[Waiting]) -> list[Waiting]:
    """Each once, in order. Raises `ToolError` for a name that nothing waits under."""
    from goat_mcp.upstreams.pinning.pin_review import meant_by

    found: dict[Waiting, None] = {}
    for name in names:
        meant = meant_by(name, waiting)
        if not meant:
            known = ", ".join(one.target for one in waiting[:10])
            hint = f"These wait: {known}." if known else "Nothing waits for approval. See goat-mcp lock."
            raise ToolError(ErrorCode.NOT_FOUND, f"nothing waits for approval under {escaped(name)!r}", hint)
        found |= dict.fromkeys(meant)
    return list(found)


def _ask(names: Sequence[str], everything: bool, agreed: str, as_json: bool) -> None:
    if as_json or not sys.stdin.isatty():
        words = ["--all"] if everything else [shlex.quote(name) for name in names]
        command = f"goat-mcp lock approve {' '.join(words)} --yes {agreed}"
        _refuse(
            "approving a change needs a person at a terminal", f"Run it there, or name what you have seen: {command}"
        )
    if not confirmed("Approve exactly this?"):
        _refuse("not approved", "Nothing was changed.")


def _refuse(message: str, suggestion: str) -> NoReturn:
    raise ToolError(ErrorCode.PERMISSION, message, suggestion)


def _suspicious(pins: PinLock, definitions: PinnedDefinitions) -> list[Suspicious]:
    from goat_mcp.upstreams.pinning.pin_review import suspicious_in

    return suspicious_in(pins.content(), definitions)


def _why(one: Waiting, definitions: PinnedDefinitions) -> tuple[str, ...]:
    """Why a person should read what waits, beside that it is new."""
    kept = definitions.some(one.server, {one.after})
    return why_suspicious(kept[one.after], one.server) if one.after in kept else ()


def _print_suspicious(one: Waiting, definitions: PinnedDefinitions) -> None:
    from goat_mcp.upstreams.pinning.pin_review import difference

    click.echo(
        f"{escaped(one.target)} is pinned (risk: {one.risk})" if one.risk else f"{escaped(one.target)} is pinned"
    )
    say(f"  Careful: its definition {'; '.join(_why(one, definitions))}")
    for line in difference(one, definitions):
        click.echo(f"  {line}")


def _document(one: Waiting, definitions: PinnedDefinitions) -> dict[str, Any]:
    from goat_mcp.upstreams.pinning.pin_review import difference

    why = list(_why(one, definitions))
    names = {"name": one.target, "server": one.server, "kind": one.kind, "risk": one.risk, "suspicious": why}
    return {**names, "pinned": one.before or None, "now": one.after, "diff": difference(one, definitions)}


def _print_differences(chosen: Sequence[Waiting], definitions: PinnedDefinitions) -> None:
    from goat_mcp.upstreams.pinning.pin_review import difference

    for one in chosen:
        what = "has changed" if one.before else "is new"
        click.echo(f"{escaped(one.target)} {what}" + (f" (risk: {one.risk})" if one.risk else ""))
        if why := _why(one, definitions):
            say(f"  Careful: its definition {'; '.join(why)}")
        for line in difference(one, definitions):
            click.echo(f"  {line}")


def _list(as_json: bool, unpinned: dict[str, str], names: dict[str, str] | None = None) -> None:
    """`names`: what an upstream is called in its entry, by what it is called in the lock."""
    from goat_mcp.upstreams.pinning.pin_review import waiting_in

    pins, definitions = _stores()
    content = pins.content()
    waiting = waiting_in(content)
    suspicious = _suspicious(pins, definitions)
    servers: list[dict[str, Any]] = [
        {
            "server": (names or {}).get(server, server),
            "launch": one.launch,
            "pinned": {kind: len(named) for kind, named in one.pins.items()},
            "waiting": [each.target for each in waiting if each.server == server],
            "suspicious": [str(each) for each in suspicious if each.about.server == server],
        }
        for server, one in content.servers.items()
    ]
    if as_json:
        document = {"file": str(pins.path), "distrust": content.distrust, "servers": servers}
        click.echo(json.dumps({**document, "unpinned_launches": unpinned}))
        return
    if content.distrust:
        say(f"goat-mcp: {content.distrust}; all that is seen waits for: goat-mcp lock approve --all", err=True)
    for server in servers:
        counts = ", ".join(_counted(count, kind) for kind, count in server["pinned"].items() if count) or "nothing"
        say(f"{escaped(server['server'])}\tpinned: {counts}")
        for target in server["waiting"]:
            say(f"  waits: {escaped(target)}")
        for each in server["suspicious"]:
            say(f"  careful: {escaped(each)}")
    if not servers:
        say("Nothing is pinned yet.", err=True)
    _warn(unpinned)


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 or what.endswith("s") else f"{count} {what}s"


def _warn(unpinned: dict[str, str]) -> None:
    for name, advice in unpinned.items():
        say(f"goat-mcp: upstream {escaped(name)}: {escaped(advice)}", err=True)


def _unpinned_launches(settings: Settings) -> dict[str, str]:
    from goat_mcp.upstreams.pinning.launch_fingerprint import unpinned_launch

    configs = load_upstream_files(settings.upstreams, contents=settings.contents).configs
    return {config.name: advice for config in configs if (advice := unpinned_launch(config))}


def _configured_names(settings: Settings) -> dict[str, str]:
    configs = load_upstream_files(settings.upstreams, contents=settings.contents).configs
    return {config.server: config.name for config in configs}


def _check(settings: Settings, as_json: bool) -> int:
    from goat_mcp.gateway.gateway import Gateway

    gateway = Gateway(settings, approval=settings.approval.by or Approval.HOST)
    before = gateway.upstreams.only_compare()

    async def compare() -> list[Comparison]:
        async with gateway.running():
            with waiting_for(f"asking {', '.join(config.name for config in gateway.upstreams.configs)}"):
                return await gateway.upstreams.compare(before)

    found = anyio.run(compare)
    unpinned = _unpinned_launches(settings)
    if as_json:
        click.echo(json.dumps({"upstreams": [one.document() for one in found], "unpinned_launches": unpinned}))
    else:
        for one in found:
            say(f"{escaped(one.name)}\t{one.verdict}")
            for line in one.lines():
                click.echo(f"  {escaped(line)}")
        _warn(unpinned)
    if any(one.differs for one in found):
        return USAGE
    return UNREACHABLE if any(one.problem for one in found) else OK
