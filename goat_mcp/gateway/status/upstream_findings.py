"""From an upstream's status, fresh from a try to connect, to what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from goat_mcp.gateway.status.finding import AUTH, SCHEMA, TOOL_ERROR, UNREACHABLE, USAGE, Finding
from goat_mcp.upstreams.reason_pages import REASON_PAGES
from goat_mcp.upstreams.status import ReasonCode, UpstreamState, UpstreamStatus

ExitCode = Literal[0, 1, 3, 4, 5, 6]
_R = ReasonCode
_EXIT: dict[ReasonCode, ExitCode] = {
    _R.CONFIG_ERROR: USAGE,
    _R.SELF_LAUNCH: USAGE,
    _R.AUTH_REQUIRED: AUTH,
    _R.LIST_FAILED: TOOL_ERROR,
    _R.QUARANTINED: TOOL_ERROR,
    _R.BROKEN_ENTRY: SCHEMA,
    _R.BROKEN_SCHEMA: SCHEMA,
    _R.HIDDEN_DATA: SCHEMA,
    _R.SCHEMA_TOO_LARGE: SCHEMA,
    _R.SCHEMA_TOO_DEEP: SCHEMA,
    # These leave everything else in use, or were asked for.
    _R.DISABLED: 0,
    _R.TOOL_DISABLED: 0,
    _R.TASKS_ONLY: 0,
    _R.UNKNOWN_KEY: 0,
    _R.LIST_TRUNCATED: 0,
    _R.NAME_COLLISION: 0,
    _R.LISTED_TWICE: 0,
    _R.GATEWAY_CYCLE: 0,
    _R.LAUNCH_CHANGED: 0,
}
"""Whatever is not here keeps an upstream from being reached."""


def upstream_findings(status: UpstreamStatus) -> Iterator[Finding]:
    """All that its status tells. What it lists is looked at, nothing of it is called."""
    name = status.name
    if status.reason_code:
        yield _of(status.reason_code, name, status.detail)
    elif status.state is not UpstreamState.READY:
        yield _of(ReasonCode.START_TIMEOUT, name, "it did not get ready while doctor waited")
    for withheld in status.withheld:
        if withheld.reason_code is not ReasonCode.GATEWAY_CYCLE:  # told once, for all of them
            yield _of(withheld.reason_code, name, f"{withheld.kind} {withheld.name or '(no name)'}: {withheld.reason}")
    for collision in status.collisions:
        yield _of(ReasonCode.NAME_COLLISION, name, collision)
    for unchecked in status.unchecked_outputs:
        yield Finding(
            id="output_schema_unused",
            about=name,
            detail=f"its outputSchema is not used: {unchecked}",
            fix="Report it to whoever makes the server; the tool itself works.",
        )
    if status.junk_lines:
        yield Finding(
            id="junk_on_stdout",
            about=name,
            detail=f"{status.junk_lines} lines on its stdout were no messages and were skipped",
            fix="Report it to whoever makes the server: what it prints belongs on stderr.",
        )
    for mention in status.mentions:
        yield Finding(
            id="speaks_of_other_tools",
            about=name,
            detail=mention,
            fix="Read that description yourself: one server has no business steering the use of another's tools.",
        )
    if status.escaped_tools:
        yield Finding(
            id="hidden_characters",
            about=name,
            detail=f"{status.escaped_tools} of its tools had invisible characters in their texts; they are shown now",
            fix="Read those texts yourself before you trust the server.",
        )
    if status.escaped_results:
        yield Finding(
            id="hidden_characters_in_results",
            about=name,
            detail=f"{status.escaped_results} of its results had characters that hide or act on a terminal; shown",
            fix="Find out what it wanted to hide before you trust the server.",
        )


def _of(code: ReasonCode, name: str, detail: str) -> Finding:
    exit_code = _EXIT.get(code, UNREACHABLE)
    return Finding(id=str(code), about=name, detail=detail, fix=REASON_PAGES[code].remedy, exit_code=exit_code)
