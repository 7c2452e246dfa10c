"""`goat-mcp audit`: what was called, what was decided about it, and whether that record is as it was written."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from goat_mcp.cli import flags
from goat_mcp.cli.exit_codes import USAGE
from goat_mcp.cli.terminal import console, escaped, print_table
from goat_mcp.cli.waiting import waiting_for
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.settings.loading import load_settings
from goat_mcp.state.directory import StateDirectory

if TYPE_CHECKING:  # loaded when a subcommand runs
    from goat_mcp.calls.audit.records import CallFilter
    from goat_mcp.calls.audit.verify import Verification

Command = TypeVar("Command", bound=Callable[..., Any])

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes such a cell for a formula, and names of tools come from others."""


def _record(command: Command) -> Command:
    options = (
        click.option("--file", type=click.Path(path_type=Path), help="Another record than that of the settings."),
        click.option("--config", type=click.Path(path_type=Path), metavar="FILE", help="Settings with an audit.path."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group()
def audit() -> None:
    """Show, verify and export the record of calls."""


_SINCE = click.option(
    "--since", metavar="TIME", help="A date, a time (UTC if it names no zone), or 30m, 12h, 7d before now."
)


@audit.command()
@click.option(
    "--last", default=20, type=click.IntRange(1, 1_000_000), metavar="N", help="How many calls; 20 if you leave it out."
)
@_SINCE
@click.option("--server", default="", metavar="NAME", help="Only calls of this server's tools.")
@click.option("--tool", default="", metavar="NAME", help="Only calls of this tool.")
@click.option("--denied", is_flag=True, help="Only calls that were not allowed.")
@click.option("--host", "client", default="", metavar="CLIENT", help="Only calls of clients with this in their name.")
@click.option("--call", "call_id", default="", metavar="ID", help="Only the call with this id.")
@_record
@flags.as_json
def show(
    last: int,
    since: str | None,
    server: str,
    tool: str,
    denied: bool,
    client: str,
    call_id: str,
    file: Path | None,
    config: Path | None,
    as_json: bool,
) -> None:
    """Show the last calls, oldest first: when, which tool with which arguments, who decided what, how it ended.

    Secrets among the arguments are replaced. Calls are kept for 30 days (audit.kept_days); older ones are in the chain
    of hashes, without arguments: name its file with --file.
    """
    from goat_mcp.calls.audit.records import CallFilter

    wanted = CallFilter(
        since=_since(since), server=server, tool=tool, client=client, call_id=call_id, only_denied=denied
    )
    if file is not None and client:
        raise ToolError(
            ErrorCode.INPUT, "--host cannot be used with --file", "That file does not name clients: leave one out."
        )
    chain = _path(file, config)
    with waiting_for("reading the record of calls"):
        calls = _recorded(last, wanted) if file is None else []
        if file is not None or (not calls and not client and chain.exists()):
            from goat_mcp.calls.audit.records import last_calls

            with _Readable(chain):
                calls = last_calls(chain, last, wanted)
    if as_json:
        click.echo(json.dumps({"calls": calls}))
    elif calls:
        _print_calls(calls)
    elif file is None and wanted == CallFilter():
        click.echo(_NOTHING_YET, err=True)
    else:
        click.echo(_no_such_calls(wanted), err=True)


@audit.command()
@click.option("--expect-head", metavar="HEAD", help="A head that an earlier run printed and you kept elsewhere.")
@click.option("--no-anchors", is_flag=True, help="Do not compare it with the heads in the shared state (state.url).")
@_record
@flags.as_json
def verify(expect_head: str | None, no_anchors: bool, file: Path | None, config: Path | None, as_json: bool) -> None:
    """Check that no line was changed, removed or moved, and name the first bad one; the exit code is then 1.

    Lines cut off the end show only against a head kept elsewhere: give it with --expect-head. Servers with a state.url
    keep heads there every 10 s and at their end: these are compared, on the machine that has the record.
    """
    from goat_mcp.calls.audit import verify as verification

    try:
        expected = verification.parse_head(expect_head) if expect_head is not None else None
    except verification.InvalidHead:
        raise ToolError(
            ErrorCode.INPUT, f"--expect-head {expect_head!r:.100} is no head", "Write what verify printed: NUMBER:HASH."
        ) from None
    path = _path(file, config)
    with _Readable(path), waiting_for("reading the record of calls"):
        anchors = None if no_anchors else _anchors(path, config)
        found = verification.verify(path, expected=expected, anchors=anchors)
    click.echo(json.dumps(_document(path, found)) if as_json else found.in_words)
    if not found.is_intact:
        sys.exit(USAGE)


@audit.command()
@_SINCE
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), default="jsonl", show_default=True)
@_record
def export(since: str | None, form: str, file: Path | None, config: Path | None) -> None:
    """Write the events to standard output, oldest first."""
    from goat_mcp.calls.audit.records import EVENT_FIELDS, events

    path, start = _path(file, config), _since(since)
    with _Readable(path):
        found = events(path, since=start)
        if form == "jsonl":
            for event in found:
                click.echo(json.dumps(event))
            return
        rows = csv.writer(sys.stdout, lineterminator="\n")
        rows.writerow(EVENT_FIELDS)
        for event in found:
            rows.writerow([_cell(event.get(name)) for name in EVENT_FIELDS])


class _Readable:
    """A record that cannot be read becomes an error that the user can fix."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: object) -> None:
        if isinstance(problem, OSError) and not isinstance(problem, BrokenPipeError):
            reason = "there is none yet" if isinstance(problem, FileNotFoundError) else problem.strerror
            raise ToolError(
                ErrorCode.NOT_FOUND, f"the record of calls {self._path}: {reason}", "Name another one with --file."
            ) from None


def _path(file: Path | None, config: Path | None) -> Path:
    if file is not None:
        return file.expanduser()
    named = load_settings({}, config_file=config).audit.path
    return named.expanduser() if named is not None else StateDirectory.default().path / "audit.jsonl"


def _anchors(path: Path, config: Path | None) -> list[str] | None:
    """The heads of this record in the shared state; None without one. Raises `ToolError`: who cannot compare cannot say
    that nothing was cut."""
    from goat_mcp.calls.audit.anchors import Anchors
    from goat_mcp.state.redis.shared_state import SharedState
    from goat_mcp.state.secret_references import SecretReferences

    options = load_settings({}, config_file=config).state
    shared = SharedState.of(options, SecretReferences(redactor=Redactor(), state=StateDirectory.default()))
    if shared is None:
        return None
    try:
        return Anchors(shared.connection, shared.keys, shared.machine, path).read()
    except ToolError as unknown:
        step = "Try again, or leave the heads in the shared state out with --no-anchors."
        raise ToolError(unknown.code, unknown.message, step) from None
    finally:
        shared.connection.close_here()


def _since(text: str | None) -> datetime | None:
    if text is None:
        return None
    from goat_mcp.calls.audit.records import InvalidTime, parse_since

    try:
        return parse_since(text, datetime.now(UTC))
    except (InvalidTime, OverflowError):
        raise ToolError(
            ErrorCode.INPUT, f"--since {text!r:.100} is no time", "Write e.g. 2026-11-22, 2026-11-22T10:00:00Z or 12h."
        ) from None


_NOTHING_YET = (
    "Nothing is recorded yet: each call of a tool is, from the first on.\n"
    "Connect a host with `goat-mcp install HOST`, or call a tool here: goat-mcp call Glob 'pattern=*'"
)


def _people_path() -> Path:
    from goat_mcp.calls.audit.call_record import FILE_NAME

    return StateDirectory.default().path / FILE_NAME


@contextmanager
def _readable_record() -> Generator[Path]:
    from goat_mcp.calls.audit.recorded_calls import UnreadableRecord

    path = _people_path()
    try:
        yield path
    except UnreadableRecord as problem:
        raise ToolError(
            ErrorCode.IO,
            f"the record of calls {path} cannot be read: {problem}",
            f"See the chain of hashes instead: goat-mcp audit show --file '{path.with_name('audit.jsonl')}'.",
        ) from None


def _recorded(last: int, wanted: CallFilter) -> list[dict[str, Any]]:
    from goat_mcp.calls.audit.recorded_calls import recorded_calls

    with _readable_record() as path:
        return recorded_calls(path, last, wanted)


def _no_such_calls(wanted: CallFilter) -> str:
    """With the names that are nearest to one that has no calls at all."""
    from goat_mcp.calls.audit.recorded_calls import names_in

    with _readable_record() as path:
        names = names_in(path)
    given = (("tool", wanted.tool), ("server", wanted.server), ("client", wanted.client))
    hints = [did_you_mean(name, names[kind]) for kind, name in given if name and name not in names[kind]]
    return " ".join(("No such calls.", *(hint[0].upper() + hint[1:] for hint in hints if hint)))


def _print_calls(calls: list[dict[str, Any]]) -> None:
    from goat_mcp.calls.audit.records import outcome_of, reason_of

    if console().is_terminal:
        for call in calls:
            _print_call(call)
        return
    headers = ["call", "time", "tool", "decision", "outcome", "ms", "rule", "client", "arguments", "size"]
    rows = [
        [
            str(call.get("call_id")),
            str(call.get("ts")),
            str(call.get("tool")),
            str(call.get("decision", "")),
            outcome_of(call),
            str(call.get("duration_ms", "")),
            reason_of(call),
            str(call.get("client", "")),
            json.dumps(call["arguments"], ensure_ascii=False) if "arguments" in call else "",
            str(call.get("result_chars") or ""),
        ]
        for call in calls
    ]
    print_table(headers, rows)


def _print_call(call: Mapping[str, Any]) -> None:
    """For people: a line that says what came of it, and below it the arguments and who decided."""
    from rich.padding import Padding
    from rich.text import Text

    from goat_mcp.calls.audit.records import outcome_of, why_of

    outcome, took, size = outcome_of(call), call.get("duration_ms"), call.get("result_chars")
    when = str(call.get("ts"))[:19].replace("T", " ") + "Z"
    head = Text.assemble(
        f"{when}  ",
        (escaped(str(call.get("tool"))), "cyan"),
        "  ",
        (outcome, "green" if outcome == "ok" else "red"),
        f"  {took:.0f} ms" if took is not None else "",
    )
    size = f"{size} characters" if size else ""
    facts = [why_of(call), str(call.get("client", "")), size, f"call {call.get('call_id')}"]
    arguments = [f"{name}: {_one_line(value)}" for name, value in call.get("arguments", {}).items()]
    out = console()
    out.print(head)
    for line in (*arguments, "; ".join(fact for fact in facts if fact)):
        out.print(Padding(Text(escaped(line)), (0, 0, 0, 4)))


def _one_line(value: Any) -> str:
    return value.replace("\n", "\\n") if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _document(path: Path, found: Verification) -> dict[str, Any]:
    return {
        "path": str(path),
        "intact": found.is_intact,
        "events": found.events,
        "files": found.files,
        "first_seq": found.first_seq,
        "last_seq": found.last_seq,
        "head": found.head,
        "anchors": found.anchors,
        "bad": None if found.bad is None else {"place": found.bad.location, "problem": found.bad.problem},
        "gaps": [{"place": gap.location, "problem": gap.problem} for gap in found.gaps],
    }


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        return json.dumps(value)
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
