"""`goat-mcp logs`: what servers logged, and what upstreams wrote to stderr, if a host shows neither."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import click

from goat_mcp.cli import flags

FOLLOW_EVERY_S = 0.5
_OWN = ("timestamp", "level", "event")


@click.command
@click.argument("server", required=False)
@click.option("--follow", "-f", is_flag=True, help="Show new lines as they come, until Ctrl-C.")
@click.option(
    "--last", "-n", default=100, type=click.IntRange(0, 100_000), metavar="N", help="How many lines at first."
)
@flags.as_json
def logs(server: str | None, follow: bool, last: int, as_json: bool) -> None:
    """Show the last log lines of your goat-mcp processes; with SERVER those about this upstream.

    Below comes what upstreams wrote to stderr last: those of running processes, else, with SERVER, what is known of its
    last run and its last failure. With --json each line is one JSON object.
    """
    from goat_mcp.gateway.status.log_files import LogReader
    from goat_mcp.gateway.status.process_files import ProcessFiles
    from goat_mcp.state.directory import StateDirectory

    state = StateDirectory.default()
    reader, processes = LogReader(state), ProcessFiles(state)
    lines = [line._asdict() for line in reader.new_lines() if server in (None, line.fields.get("upstream"))]
    running = processes.running()
    if server is not None:
        _check_known(server, lines, running)
    shown_before: dict[tuple[int, str], list[str]] = {}
    of_stderr = list(_stderr_lines(running, server, shown_before))
    earlier = _earlier(server) if server is not None and not of_stderr else ()
    shown: list[dict[str, Any]] = [*(lines[-last:] if last else []), *of_stderr, *earlier]
    _print(shown, as_json)
    if not shown and not follow and not as_json:
        click.echo(f"Nothing has been logged{' about it' if server else ''}.", err=True)
    while follow:
        time.sleep(FOLLOW_EVERY_S)
        _print(
            [line._asdict() for line in reader.new_lines() if server in (None, line.fields.get("upstream"))], as_json
        )
        _print(_stderr_lines(processes.running(), server, shown_before), as_json)


def _check_known(server: str, lines: list[Any], running: list[dict[str, Any]]) -> None:
    """Raises `ToolError(NOT_FOUND)` if nobody has ever heard of that server."""
    from goat_mcp.cli.server_records import last_runs, unknown_server

    known = {upstream["name"] for document in running for upstream in document["upstreams"]}
    known |= {run.name for run in last_runs().values()}
    if lines or server in known:
        return
    known |= _configured()
    if server not in known:
        raise unknown_server(server, known)


def _configured() -> set[str]:
    """The servers of the settings in force here; none if these cannot be used, which is no business of this command."""
    from goat_mcp.calls.permissions.mode import Approval
    from goat_mcp.core.errors import ToolError
    from goat_mcp.gateway.gateway import Gateway
    from goat_mcp.settings.loading import load_settings

    try:
        gateway = Gateway(load_settings({"log_level": "error"}), approval=Approval.DENY)
    except (ToolError, OSError):
        return set()
    return {status.name for status in gateway.upstreams.status()}


def _earlier(server: str) -> Iterator[dict[str, Any]]:
    """What is known of its last failure and its stderr from processes that are gone."""
    from goat_mcp.cli.server_records import iso, last_runs

    for run in last_runs().values():
        if run.name != server:
            continue
        if run.failed_at_s:
            fields = {
                "timestamp": iso(run.failed_at_s),
                "level": "warning",
                "event": "last failure",
                "upstream": server,
                "reason": run.reason_code,
                "problem": run.cause,
                **({"worked_again": iso(run.worked_at_s)} if run.worked_at_s > run.failed_at_s else {}),
            }
            yield {"pid": run.pid, "fields": fields}
        for line in run.stderr_lines:
            yield {"pid": run.pid, "fields": {"upstream": server, "stderr": line}}


def _stderr_lines(
    running: list[dict[str, Any]], server: str | None, shown_before: dict[tuple[int, str], list[str]]
) -> Iterator[dict[str, Any]]:
    """What is new in the ends of stderr since the last look."""
    for document in running:
        for upstream in document["upstreams"]:
            name, tail = upstream["name"], upstream["stderr_tail"].splitlines()
            if server not in (None, name):
                continue
            before = shown_before.get((document["pid"], name), [])
            shown_before[document["pid"], name] = tail
            for line in _added(before, tail):
                yield {"pid": document["pid"], "fields": {"upstream": name, "stderr": line}}


def _added(before: list[str], now: list[str]) -> list[str]:
    """The lines after the longest overlap: the tail is a window that moves."""
    for kept in range(min(len(before), len(now)), 0, -1):
        if before[-kept:] == now[:kept]:
            return now[kept:]
    return now


def _print(lines: Any, as_json: bool) -> None:
    from goat_mcp.cli.terminal import escaped

    for line in lines:
        fields: dict[str, Any] = line["fields"]
        if as_json:
            click.echo(json.dumps({"pid": line["pid"], **fields}))
        elif "stderr" in fields:
            click.echo(escaped(f"[{line['pid']}] {fields['upstream']}: {fields['stderr']}"))
        else:
            rest = " ".join(f"{name}={value}" for name, value in fields.items() if name not in _OWN)
            text = f"{fields.get('timestamp', '')} {fields.get('level', '')}: {fields.get('event', '')} {rest}"
            click.echo(escaped(f"[{line['pid']}] {text}").replace("\n", " "))
