"""What a benchmark found, and how people and programs see it. Measuring is elsewhere."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True)
class Bar:
    """What must be reached: `measured` is to be at most `limit`, or at least. A missed bar is shown, never an error."""

    measured: float
    limit: float
    unit: str
    is_minimum: bool = False

    @property
    def is_met(self) -> bool:
        return self.measured >= self.limit if self.is_minimum else self.measured <= self.limit

    def __str__(self) -> str:
        verdict = "ok" if self.is_met else "MISSED"
        least = "at least " if self.is_minimum else ""
        return f"{_number(self.measured)} {self.unit}, bar {least}{_number(self.limit)} {self.unit}: {verdict}"


@dataclass(frozen=True)
class Row:
    """One line of the table: our figure, the one it is compared with, and the bar if there is one."""

    what: str
    ours: float
    unit: str
    against: str = ""
    theirs: float | None = None
    bar: Bar | None = None


@dataclass(frozen=True)
class Outcome:
    """All of one subject's rows, or why there are none."""

    subject: str
    rows: tuple[Row, ...]
    failure: str = ""


HEADINGS = ("what", "ours", "compared with", "bar")


def print_table(outcomes: Sequence[Outcome]) -> None:
    """A rich table on a terminal, aligned text anywhere else."""
    lines = [_cells(row) for outcome in outcomes for row in outcome.rows]
    lines += [(outcome.subject, "not measured", outcome.failure, "") for outcome in outcomes if outcome.failure]
    if sys.stdout.isatty():
        _print_rich(lines)
    else:
        widths = [max(map(len, column)) for column in zip(HEADINGS, *lines, strict=True)]
        for line in (HEADINGS, tuple("-" * width for width in widths), *lines):
            print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def write_json(outcomes: Sequence[Outcome], path: Path, *, quick: bool) -> None:
    rows = [{"subject": outcome.subject, **_as_json(row)} for outcome in outcomes for row in outcome.rows]
    document = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"system": platform.platform(), "python": platform.python_version(), "load": os.getloadavg()},
        "quick": quick,
        "rows": rows,
        "not_measured": {outcome.subject: outcome.failure for outcome in outcomes if outcome.failure},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def _as_json(row: Row) -> Mapping[str, object]:
    found = asdict(row)
    if row.bar is not None:
        found["bar"]["ok"] = row.bar.is_met
    return found


def _cells(row: Row) -> tuple[str, str, str, str]:
    against = f"{row.against} {_number(row.theirs)} {row.unit}" if row.theirs is not None else row.against
    return row.what, f"{_number(row.ours)} {row.unit}", against, str(row.bar) if row.bar is not None else ""


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"


def _print_rich(lines: Sequence[tuple[str, str, str, str]]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table()
    for heading in HEADINGS:
        table.add_column(heading, overflow="fold")
    for what, ours, against, bar in lines:
        colour = "green" if bar.endswith("ok") else "red" if bar else ""
        table.add_row(what, ours, against, f"[{colour}]{bar}[/{colour}]" if colour else bar)
    Console().print(table)
