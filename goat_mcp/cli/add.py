"""`goat-mcp add`: one more server behind goat-mcp, checked once, without editing a file by hand."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from goat_mcp.cli import exit_codes, flags
from goat_mcp.cli.entry_secrets import plain_secrets, with_stored_secrets
from goat_mcp.cli.host_changes import dry_run as dry_run_flag
from goat_mcp.cli.host_changes import refuse_a_model
from goat_mcp.cli.own_file import say_change
from goat_mcp.cli.running_servers import say_followers
from goat_mcp.cli.terminal import say
from goat_mcp.cli.waiting import waiting_for
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.redacted_diff import redacted_diff
from goat_mcp.gateway.status.running_servers import fields, readers_of
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.own_servers import (
    file_to_write,
    read_servers,
    server_part,
    servers_in,
    users_files,
)
from goat_mcp.state.file_edit import edit_alone, write_change

if TYPE_CHECKING:  # loaded when the server is checked
    from goat_mcp.cli.server_check import ServerCheck
    from goat_mcp.settings.settings import Settings

CHECK_S = 310.0
"""It fails by itself before that: servers have their own time to start in, which is long for those that are downloaded
first."""
_ADDRESS = re.compile(r"(?:localhost|[\w-]+(?:\.[\w-]+)+)/|[\w.-]+:\d+(?:/|\Z)")
"""An address without http:// in front. A path that is there looks like one, too."""
_HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+)\s*[=:]\s*(.*)", re.S)


class _Add(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as wrong:
            if "--" in given:
                raise
            raise click.UsageError(
                f"goat-mcp add has no option {wrong.option_name}; if it belongs to the server's command, write -- "
                "before that: goat-mcp add NAME -- COMMAND ARGS",
                ctx,
            ) from None


@click.command(cls=_Add)
@click.argument("name")
@click.argument("target", nargs=-1, required=True, metavar="URL | -- COMMAND [ARGS]...")
@click.option("--env", "-e", multiple=True, metavar="K=V", help="A variable for the command. May be repeated.")
@click.option("--header", "-H", multiple=True, metavar="K=V", help="A header for the URL. May be repeated.")
@click.option("--cwd", type=click.Path(path_type=Path), metavar="DIR", help="The directory that the command works in.")
@click.option("--transport", "-t", metavar="KIND", help="stdio or http; found by itself if you leave it out.")
@click.option("--into", type=click.Path(path_type=Path), metavar="FILE", help="Another file than your upstreams.json.")
@click.option("--replace", is_flag=True, help="Take the place of a server of this name.")
@click.option("--check/--no-check", default=True, help="Start it once and list its tools (the default), or do not.")
@dry_run_flag
@flags.as_json
def add(
    name: str,
    target: Sequence[str],
    env: Sequence[str],
    header: Sequence[str],
    cwd: Path | None,
    transport: str | None,
    into: Path | None,
    replace: bool,
    check: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Add an MCP server: `add NAME -- COMMAND ARGS...` for a program, `add NAME URL` for an address.

    It is started once and its tools are listed. Secrets: store one with `goat-mcp secret set NAME`, and write
    '${secret:NAME}' as the value. Exit status 4 if it does not answer, 3 if it wants a login; the entry stays.
    """
    refuse_a_model(dry_run, "change which servers there are")
    entry = _entry(target, env=env, header=header, cwd=cwd, transport=transport)
    settings = load_settings({})
    path = file_to_write(settings, into)
    _check_name(name, path, settings, replace=replace)
    notes = _entry_notes(name, entry, path)
    if sys.stdin.isatty() and sys.stderr.isatty() and not as_json and not dry_run:
        entry = with_stored_secrets(name, entry)
    notes += [secret.note(path) for secret in plain_secrets(name, entry)]
    with edit_alone():
        change = read_servers(path).with_entry(name, entry).change
        if not dry_run:
            write_change(change)
    if not as_json:
        say_change(change, dry_run=dry_run)
        for note in notes:
            say(f"goat-mcp: {note}", err=True)
    found = None if dry_run or not check else _checked(name, entry, path)
    followers = [] if dry_run else readers_of(path)
    if as_json:
        document = {
            "name": name,
            "file": str(path),
            "changed": change.is_one and not dry_run,
            "dry_run": dry_run,
            "diff": redacted_diff(change),
            "notes": notes,
            "check": None if found is None else found.fields(),
            "running": fields(followers),
        }
        click.echo(json.dumps(document))
    elif not dry_run:
        if found is not None:
            found.say()
        say_followers(followers)
    return exit_codes.OK if found is None else found.exit_code


def _entry(
    target: Sequence[str], *, env: Sequence[str], header: Sequence[str], cwd: Path | None, transport: str | None
) -> dict[str, Any]:
    """The entry as it goes into the file. Raises `click.UsageError`."""
    is_url = "://" in target[0]
    kind = (transport or ("http" if is_url else "stdio")).lower()
    if kind == "sse":
        raise click.UsageError(
            "--transport sse is the retired HTTP+SSE transport; give the server's streamable HTTP address, often /mcp "
            "in place of /sse"
        )
    if kind not in ("stdio", "http", "streamable-http"):
        raise click.UsageError(f"--transport {kind}: no such transport; write stdio or http")
    if is_url != (kind != "stdio"):
        raise click.UsageError(f"--transport {kind} does not go with {target[0]!r}; leave --transport out")
    if is_url:
        if len(target) > 1:
            raise click.UsageError(f"a URL takes no arguments, got {target[1]!r}; headers go with --header K=V")
        if env or cwd is not None:
            raise click.UsageError(f"{'--env' if env else '--cwd'} is for a command; headers go with --header K=V")
        headers = dict(_pair(one, "--header", _HEADER) for one in header)
        return {"url": target[0], **({"headers": headers} if headers else {})}
    if header:
        raise click.UsageError("--header is for a URL; variables of a command go with --env K=V")
    command, *args = target
    if _ADDRESS.match(command) and not Path(command).exists():
        raise click.UsageError(f"{command!r} is no program here; for an address write http://{command}")
    if "/" in command and not command.startswith(("/", "~", "${")):
        command = str(Path(command).absolute())
    variables = dict(_pair(one, "--env", re.compile(r"([^=\s]+)=(.*)", re.S)) for one in env)
    return {
        "command": command,
        **({"args": args} if args else {}),
        **({"env": variables} if variables else {}),
        **({"cwd": str(cwd.expanduser().absolute())} if cwd is not None else {}),
    }


def _pair(text: str, option: str, form: re.Pattern[str]) -> tuple[str, str]:
    match = form.fullmatch(text)
    if match is None:
        # The text may be a secret on its own.
        raise click.UsageError(f"{option} wants NAME=VALUE, with the name first and a reference or a text as its value")
    return match[1], match[2]


def _check_name(name: str, path: Path, settings: Settings, *, replace: bool) -> None:
    """Raises `ToolError` for a name that tool names cannot have, and for one that is taken."""
    part = server_part(name)
    if part != name:
        hint = f"; write {part}" if part else ""
        raise ToolError(
            ErrorCode.INPUT,
            f"{name!r:.100} is no name for a server: letters, digits, - and single _ inside{hint}",
            "Tools will be called mcp__NAME__tool.",
        )
    known = servers_in(list(dict.fromkeys([path, *users_files(settings)])))
    for one in known:
        if server_part(one.name) != part or (replace and one.file.path == path and one.name == name):
            continue
        as_what = "" if one.name == name else f" as {one.name!r}, which tool names call the same"
        remedy = f"goat-mcp remove {shlex.quote(one.name)}"
        also = ", or add it with --replace" if one.file.path == path and one.name == name else ""
        raise ToolError(
            ErrorCode.INPUT,
            f"there is a server {name} already{as_what}, in {one.file.path}",
            f"Choose another name, take that one out first: {remedy}{also}",
        )


def _entry_notes(name: str, entry: Mapping[str, Any], path: Path) -> list[str]:
    """What is odd about an entry. Raises `ToolError` for one that cannot be used at all."""
    from goat_mcp.core.substitution import Unresolved
    from goat_mcp.state.secret_references import SecretReferences
    from goat_mcp.upstreams.config.entry_parser import BrokenEntry, upstream_of

    class Unread(SecretReferences):
        """What a reference leads to may come later."""

        def resolve(self, value: Any) -> Any:
            return value

    notes: list[str] = []
    try:
        upstream_of(name, dict(entry), path, Unread(), lambda code, message: notes.append(message))
    except BrokenEntry as broken:
        raise ToolError(ErrorCode.INPUT, str(broken), "Nothing was changed.") from None
    try:
        SecretReferences().resolve(dict(entry))
    except Unresolved as missing:
        notes.append(str(missing))
    for arg in entry.get("args", ()):
        if not arg.startswith(("-", "/", "~")) and Path(arg).is_file():
            whole = Path(arg).absolute()
            notes.append(f"{arg} is found only if the server starts in the directory you are in; {whole} always is")
    return notes


def _checked(name: str, entry: Mapping[str, Any], path: Path) -> ServerCheck:
    from goat_mcp.cli.server_check import check_server

    try:
        with waiting_for(f"{name}: starting, to list its tools (Ctrl-C: do not check)"):
            return check_server(name, entry, path, CHECK_S)
    except KeyboardInterrupt:
        say(f"{name} was not checked; the entry stays. Check it: goat-mcp doctor {name}", err=True)
        raise
