"""`goat-mcp trust`: what a project's settings file would change, and the user's word on it."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import click

from goat_mcp.calls.approvals.record import Verdict
from goat_mcp.cli import flags
from goat_mcp.cli.approve import BY
from goat_mcp.cli.terminal import confirmed, escaped, print_table, say
from goat_mcp.cli.terminal_user import refuse_if_run_by_a_model
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.trust import FILE_NAME
from goat_mcp.state.trust.project import DENIALS, ProjectSettings, whole_project
from goat_mcp.state.trust.settings_file import BrokenFile, find_project_file
from goat_mcp.state.trust.store import Trusted, TrustStore

UNTRUSTED, TRUSTED, CHANGED, GONE = "untrusted", "trusted", "changed", "gone"


@click.command()
@click.argument("project", type=click.Path(path_type=Path), default=".")
@click.option("--list", "list_all", is_flag=True, help="List the files you have trusted.")
@click.option("--revoke", is_flag=True, help="Stop trusting it.")
@click.option(
    "--yes",
    "agreed_hash",
    metavar="HASH",
    help="Trust the content with this hash without asking (for scripts).",
)
@flags.as_json
def trust(project: Path, list_all: bool, revoke: bool, agreed_hash: str | None, as_json: bool) -> None:
    """Show what the goat-mcp.yaml of a project would change, and trust exactly that content if you agree.

    PROJECT is its directory or the file. Until you trust it only what it denies is in force; after any change of it,
    or of a file it names, the same holds again.
    """
    if sum((list_all, revoke, agreed_hash is not None)) > 1:
        raise click.UsageError("--list, --revoke and --yes do not go together; give one")
    store = TrustStore(StateDirectory.default())
    if list_all:
        _list(store, as_json)
    elif revoke:
        _revoke(store, _file_of(project), as_json)
    else:
        _show_and_ask(store, _file_of(project), agreed_hash, as_json)
    for problem in store.problems:
        say(f"goat-mcp: {problem}", err=True)


def _file_of(project: Path) -> Path:
    path = project.expanduser()
    if path.name == FILE_NAME and not path.is_dir():
        # Not its target: a link is refused, not followed.
        return path.parent.resolve() / FILE_NAME
    if not path.is_dir():
        raise click.UsageError(f"{project}: neither a directory nor a {FILE_NAME}")
    return path.resolve() / FILE_NAME


def _list(store: TrustStore, as_json: bool) -> None:
    entries = store.all()
    if as_json:
        click.echo(
            json.dumps(
                [
                    {
                        "file": one.path,
                        "sha256": one.sha256,
                        "status": _status_of(one),
                        "trusted_at_s": one.trusted_at_s,
                    }
                    for one in entries
                ]
            )
        )
        return
    rows = [
        [one.path, _status_of(one), time.strftime("%Y-%m-%d %H:%M", time.localtime(one.trusted_at_s))]
        for one in entries
    ]
    print_table(("file", "status", "trusted"), rows)
    if not entries:
        say("Nothing is trusted.", err=True)


def _status_of(one: Trusted) -> str:
    try:
        return TRUSTED if _read(Path(one.path)).sha256 == one.sha256 else CHANGED
    except ToolError:
        return CHANGED if os.path.lexists(one.path) else GONE


def _revoke(store: TrustStore, file: Path, as_json: bool) -> None:
    was_trusted = store.revoke(file)
    if was_trusted:
        anyio.run(_deny, file)
    if as_json:
        click.echo(json.dumps({"file": str(file), "status": UNTRUSTED, "was_trusted": was_trusted}))
    else:
        say(f"{escaped(str(file))} {'is trusted no longer' if was_trusted else 'was not trusted'}")


def _show_and_ask(store: TrustStore, file: Path, agreed_hash: str | None, as_json: bool) -> None:
    seen_at_s = time.time()
    project = _read(file)
    _check(project)
    before = store.of(file)
    status = UNTRUSTED if before is None else TRUSTED if before.sha256 == project.sha256 else CHANGED
    if not as_json:
        _print(project, status)
    if agreed_hash is not None:
        refuse_if_run_by_a_model("trust a project's settings")
        if agreed_hash != project.sha256:
            _refuse(f"{file} does not hold what you name: its hash is {project.sha256}", "Look at it again.")
        if status != TRUSTED:
            anyio.run(_trust, project, seen_at_s)
        status = TRUSTED
    elif status != TRUSTED and not as_json:
        refuse_if_run_by_a_model("trust a project's settings")
        if not sys.stdin.isatty():
            command = f"goat-mcp trust {shlex.quote(str(file))} --yes {project.sha256}"
            _refuse(
                "trusting a project's settings needs a person at a terminal",
                f"Run it there, or name the content you have seen: {command}",
            )
        if not confirmed("Trust exactly this?"):
            say("Not trusted.")
            return
        anyio.run(_trust, project, seen_at_s)
        status = TRUSTED
    if as_json:
        click.echo(json.dumps(_document(project, status)))
    else:
        click.echo("Trusted." if before is None or before.sha256 != project.sha256 else "Trusted before.")


async def _trust(project: ProjectSettings, seen_at_s: float) -> None:
    """Exactly this content. Raises `DecidedBefore` if somebody has decided since."""
    from goat_mcp.gateway.approvals.user_queue import UserQueue

    user = UserQueue(StateDirectory.default())
    request = user.projects.request(project)
    await user.queue.decide(request, Verdict(approved=True), seen_at_s=seen_at_s, by=BY)


async def _deny(file: Path) -> None:
    """What is trusted no longer is not asked about as if it were new."""
    from goat_mcp.gateway.approvals.user_queue import UserQueue

    try:
        project = _read(file)
    except ToolError:
        return
    user = UserQueue(StateDirectory.default())
    request = user.projects.request(project)
    await user.queue.decide(request, Verdict(approved=False, reason="revoked"), seen_at_s=time.time(), by=BY)


def _read(file: Path) -> ProjectSettings:
    from goat_mcp.settings.settings import BrokenSettings, path_keys  # a list of what is trusted reads no settings

    try:
        found = find_project_file(file.parent)
        if found is None:
            raise ToolError(ErrorCode.NOT_FOUND, f"there is no {file}", "Name the project's directory.")
        return whole_project(found, path_keys())
    except BrokenFile as broken:
        raise BrokenSettings(str(broken), "Fix the file first.") from None


def _check(project: ProjectSettings) -> None:
    """Raises `BrokenSettings` for settings that would stop the start."""
    from goat_mcp.settings.settings import settings_of

    settings_of(project.tree, str(project.file.path))


def _refuse(message: str, suggestion: str) -> None:
    raise ToolError(ErrorCode.PERMISSION, message, suggestion)


def _document(project: ProjectSettings, status: str) -> dict[str, Any]:
    from goat_mcp.gateway.approvals.project_source import settings_in

    return {
        "file": str(project.file.path),
        "sha256": project.sha256,
        "status": status,
        "settings": settings_in(project),
        "files": {str(path): data.decode("utf-8", "replace") for path, data in project.contents.items()},
    }


def _print(project: ProjectSettings, status: str) -> None:
    """All of it, on lines of ours: nothing in it reaches the terminal as anything but visible ASCII."""
    from goat_mcp.gateway.approvals.project_source import settings_in

    denials = {f"{part}.{name}" for part, name in DENIALS}
    say(f"{_ascii(str(project.file.path))[1:-1]} ({status}) would set:")
    lines = settings_in(project)
    for key, value in lines.items():
        mark = "   (in force already)" if key in denials else ""
        click.echo(f"  {_ascii(key)[1:-1]} = {_ascii(value)}{mark}")
    for path, data in project.contents.items():
        say(f"and use {_ascii(str(path))[1:-1]}, which holds:")
        for line in data.decode("utf-8", "backslashreplace").splitlines():
            click.echo(f"  | {_ascii(line)[1:-1]}")
    say(f"In short: {', '.join(_ascii(key)[1:-1] for key in lines if key not in denials) or 'nothing more'}")
    say("Scripts and programs that these commands name are not part of it: they may change unseen.")
    say(f"sha256 {project.sha256}")


def _ascii(value: Any) -> str:
    return json.dumps(value).replace("\x7f", "\\u007f")
