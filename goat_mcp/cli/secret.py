"""`goat-mcp secret`: store secrets by name for `${secret:NAME}`, list them without their values, and remove them."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.cli import flags
from goat_mcp.cli.terminal import confirmed, escaped, print_table, say
from goat_mcp.cli.terminal_user import refuse_if_run_by_a_model
from goat_mcp.cli.waiting import waiting_for
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.secret_store import MAX_VALUE_CHARS, SecretStore, SecretTrouble, StoredSecret, check_name

if TYPE_CHECKING:  # loaded if an upstream or a manifest may use a secret
    from goat_mcp.upstreams.config.upstream_files import DeclaredEntry

_KEYRING_MAY_ASK = "the keyring, which may ask you to unlock it"


@click.group()
def secret() -> None:
    """Store secrets by name: in the system's keyring, or in a file that only you can read if there is none.

    Write ${secret:NAME} where the secret is wanted, e.g. in `env` or `headers` of an upstream entry.
    """


@secret.command("set")
@click.argument("name")
@click.argument("rest", nargs=-1, metavar="")
@click.option("--stdin", "from_stdin", is_flag=True, help="Read the value from stdin, up to its last line end.")
@flags.as_json
def store(name: str, rest: Sequence[str], from_stdin: bool, as_json: bool) -> None:
    """Store the secret NAME. The value is asked for and not shown; it is never an argument."""
    refuse_if_run_by_a_model("store secrets")
    if rest or "=" in name:
        raise click.UsageError(
            "a secret is no argument: other users and your shell's history would see it; "
            f"type goat-mcp secret set {name.partition('=')[0]}, or pipe the value into it with --stdin"
        )
    try:
        check_name(name)
        value = _value(name, from_stdin)
        secrets = SecretStore(StateDirectory.default())
        was_there = any(one.name == name for one in secrets.names())
        with waiting_for(_KEYRING_MAY_ASK):
            stored = secrets.set(name, value)
    except SecretTrouble as trouble:
        raise ToolError(ErrorCode.CONFIG, str(trouble)) from None
    place = "the keyring" if stored.kept_in == "keyring" else f"{secrets.path}, which only you can read"
    if as_json:
        click.echo(json.dumps(_fields(secrets, stored) | {"replaced": was_there, "reference": f"${{secret:{name}}}"}))
        return
    say(f"{'Replaced' if was_there else 'Stored'} {name} in {place}.")
    if was_there:
        say("Running servers start the upstreams that use it again, with the new value.")
    else:
        say(f"Write ${{secret:{name}}} where it is wanted: in env or headers of an upstream entry.")


@secret.command("list")
@flags.selection
@flags.as_json
def show(as_json: bool, **selection: Any) -> None:
    """List the stored secrets: their names, where each is kept, and what uses it. No value is read."""
    refuse_if_run_by_a_model("list secrets")
    secrets = SecretStore(StateDirectory.default())
    try:
        found = secrets.names()
    except SecretTrouble as trouble:
        raise ToolError(ErrorCode.CONFIG, str(trouble)) from None
    users = _users(selection)
    if as_json:
        shown = [
            _fields(secrets, one) | {"used_by": [who for who, names in users if one.name in names]} for one in found
        ]
        click.echo(json.dumps(shown))
        return
    rows = [
        [
            one.name,
            "the keyring" if one.kept_in == "keyring" else "a file of yours alone",
            time.strftime("%Y-%m-%d %H:%M", time.localtime(one.stored_at_s)),
            ", ".join(who for who, names in users if one.name in names) or "-",
        ]
        for one in found
    ]
    print_table(["name", "kept in", "stored", "used by"], rows)
    known = {one.name for one in found}
    for who, names in users:
        for missing in sorted(names - known):
            text = f"goat-mcp: {who} wants {missing}, which is not stored; store it: goat-mcp secret set {missing}"
            say(text, err=True)
    if not found:
        say("No secrets are stored. Store one: goat-mcp secret set NAME", err=True)


@secret.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Remove it unasked, even if something uses it.")
@flags.selection
@flags.as_json
def remove(name: str, yes: bool, as_json: bool, **selection: Any) -> None:
    """Remove the secret NAME from where it is kept. If something uses it, you are asked first."""
    refuse_if_run_by_a_model("remove secrets")
    secrets = SecretStore(StateDirectory.default())
    try:
        known = [one.name for one in secrets.names()]
        if name not in known:
            raise ToolError(
                ErrorCode.NOT_FOUND,
                f"no secret {name!r:.120} is stored; {did_you_mean(name, known)}".rstrip("; "),
                "See goat-mcp secret list.",
            )
        used_by = _who_uses(name, _users(selection))
        if used_by and not yes:
            _confirm(name, used_by)
        with waiting_for(_KEYRING_MAY_ASK):
            secrets.remove(name)
    except SecretTrouble as trouble:
        raise ToolError(ErrorCode.CONFIG, str(trouble)) from None
    if as_json:
        click.echo(json.dumps({"removed": name, "used_by": used_by}))
        return
    say(f"Removed {name}.")
    if used_by:
        say(f"{', '.join(used_by)} cannot be used until you store it again.", err=True)


def _confirm(name: str, used_by: Sequence[str]) -> None:
    """Raises `ToolError` if the user does not say yes, and if nobody can be asked."""
    users = ", ".join(used_by)
    if not sys.stdin.isatty():
        raise ToolError(ErrorCode.CONFIG, f"{name} is used by {users}", "To remove it all the same, add --yes.")
    if not confirmed(f"{name} is used by {escaped(users)}. Remove it?"):
        raise ToolError(ErrorCode.CONFIG, f"{name} was not removed", "Nothing has changed.")


def _value(name: str, from_stdin: bool) -> str:
    if from_stdin:
        return sys.stdin.read(2 * MAX_VALUE_CHARS).removesuffix("\n").removesuffix("\r")
    if not sys.stdin.isatty():
        raise click.UsageError(
            "nobody can be asked for the value, since stdin is no terminal; "
            f"pipe it in: ... | goat-mcp secret set {name} --stdin"
        )
    typed: str = click.prompt(f"Value of {name} (not shown)", hide_input=True, err=True)
    return typed


def _fields(secrets: SecretStore, one: StoredSecret) -> dict[str, Any]:
    place = "keyring" if one.kept_in == "keyring" else str(secrets.path)
    return {"name": one.name, "kept_in": place, "stored_at_s": one.stored_at_s}


def _who_uses(name: str, users: Sequence[tuple[str, set[str]]]) -> list[str]:
    return [who for who, names in users if name in names]


def _users(selection: dict[str, Any]) -> list[tuple[str, set[str]]]:
    """What names secrets, in words, and which. Says on stderr what could not be looked at."""
    from goat_mcp.core.substitution import stored_secrets_in

    try:
        settings = flags.settings_from(**selection)
    except ToolError as broken:
        say(f"goat-mcp: what uses secrets is not known: {broken.message}", err=True)
        return []
    keys = {"agent.key": settings.agent.key, "web.search.key": settings.web.search.key}
    in_settings: list[tuple[str, Any]] = [(key, value.get_secret_value()) for key, value in keys.items()]
    in_settings += [(f"tools.{name}", dict(given)) for name, given in settings.tools.items()]
    users = [(f"the setting {key}", stored_secrets_in(value)) for key, value in in_settings]
    users += [(f"upstream {one.name}", stored_secrets_in(one.entry)) for one in _entries(settings)]
    return [(who, names) for who, names in users if names]


def _entries(settings: Settings) -> Iterator[DeclaredEntry]:
    """The entries of all upstreams, in files and manifests."""
    from goat_mcp.gateway.build.manifests import read
    from goat_mcp.upstreams.config.upstream_files import BrokenUpstreamsFile, DeclaredEntry, entries_of

    for file in settings.upstreams:
        try:
            yield from entries_of(file, settings.contents.get(file))
        except BrokenUpstreamsFile as broken:
            say(f"goat-mcp: {broken.message}", err=True)
    if (manifests := read(settings)) is not None:
        for document in manifests.users.upstreams:
            yield DeclaredEntry(document.name, dict(document.entry), document.document.file)
