"""`goat-mcp logs`: what servers logged, and what upstreams wrote to stderr, for where a host shows neither."""

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
@click.option("--follow", "-f", is_flag=True, help="Go on with what comes, until Ctrl-C.")
@click.option("--last", "-n", default=100, type=click.IntRange(0, 100_000), metavar="N", help="How many lines first.")
@flags.as_json
def logs(server: str | None, follow: bool, last: int, as_json: bool) -> None:
    """Show the last log lines of your goat-mcp processes; with SERVER those about this upstream.

    Below come the last lines that upstreams of running processes wrote to stderr. With --json each line is one JSON
    object.
    """
    from goat_mcp.gateway.status.log_files import LogReader
    from goat_mcp.gateway.status.process_files import ProcessFiles
    from goat_mcp.state.directory import StateDirectory

    state = StateDirectory.default()
    reader, processes = LogReader(state), ProcessFiles(state)
    lines = [line._asdict() for line in reader.new_lines() if server in (None, line.fields.get("upstream"))]
    shown_before: dict[tuple[int, str], list[str]] = {}
    shown = [*(lines[-last:] if last else []), *_stderr_lines(processes.running(), server, shown_before)]
    _print(shown, as_json)
    if not shown and not follow and not as_json:
        click.echo("Nothing has been logged.", err=True)
    while follow:
        time.sleep(FOLLOW_EVERY_S)
        _print(
            [line._asdict() for line in reader.new_lines() if server in (None, line.fields.get("upstream"))], as_json
        )
        _print(_stderr_lines(processes.running(), server, shown_before), as_json)


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
