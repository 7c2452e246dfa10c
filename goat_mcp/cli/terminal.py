"""How results look on a terminal: tables and colour for people, plain text for pipes, nothing a server can forge."""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:  # rich is loaded when something is printed
    from rich.console import Console
    from rich.table import Table

PIPE_WIDTH = 120
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
MAX_NAME_WIDTH = 50
"""Longer names are folded: with them on one line there would be no room for the rest."""
_ROOM_BESIDE_NAMES = 30
_NUMBERS = frozenset({"tokens", "tools", "calls", "ms"})
"""Headers of columns that hold numbers."""


def console(*, stderr: bool = False) -> Console:
    """A console that obeys NO_COLOR, FORCE_COLOR and TERM=dumb."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else PIPE_WIDTH)


def escaped(text: str) -> str:
    """`text` with control and direction characters made visible: servers write it, a terminal would obey it."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


_COMMAND_AT_END = re.compile(r"(.*:) +(goat-mcp \S.*)")


def say(text: str, *, err: bool = False, ends_line: bool = True) -> None:
    """Print sentences, with control characters escaped. On a terminal they are wrapped at words, and a command at the
    end of a line that is too long gets a line of its own, unbroken: people copy it."""
    text = escaped(text)
    if (sys.stderr if err else sys.stdout).isatty():
        width = shutil.get_terminal_size().columns
        text = "\n".join(wrapped for line in text.split("\n") for wrapped in _wrapped(line, width))
    click.echo(text, err=err, nl=ends_line)


def _wrapped(line: str, width: int) -> Iterator[str]:
    if len(line) <= width:
        yield line
        return
    indent = " " * (len(line) - len(line.lstrip()))
    parted = _COMMAND_AT_END.fullmatch(line)
    yield from textwrap.wrap(
        parted[1] if parted else line,
        width,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    if parted:
        yield f"{indent}  {parted[2]}"


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table with headers: aligned and coloured on a terminal, tab-separated lines elsewhere. Nothing without rows."""
    if not rows:
        return
    out = console()
    if out.is_terminal:
        out.print(wrapped_table(headers, rows))
    else:
        lines = (headers, *rows)
        click.echo("\n".join("\t".join(escaped(cell).replace("\n", " ") for cell in row) for row in lines))


def confirmed(question: str) -> bool:
    """Whether the person at the terminal answers with yes."""
    say(f"{question} Type yes:", err=True, ends_line=False)
    click.echo(" ", err=True, nl=False)
    return sys.stdin.readline().strip().lower() == "yes"


def wrapped_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose cells are wrapped and never cut. The first column is a name: it stays on one line if it can.

    Columns in which nothing stands are left out.
    """
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    width = shutil.get_terminal_size().columns
    longest_name = max((len(row[0]) for row in rows), default=0)
    shown = [at for at in range(len(headers)) if at == 0 or any(row[at] for row in rows)]
    for at, header in ((at, headers[at]) for at in shown):
        is_name = at == 0 and longest_name <= min(MAX_NAME_WIDTH, width - _ROOM_BESIDE_NAMES)
        table.add_column(
            header,
            no_wrap=is_name,
            overflow="fold",
            justify="right" if header in _NUMBERS else "left",
            style="cyan" if at == 0 else "",
        )
    for row in rows:
        table.add_row(*(Text(escaped(row[at])) for at in shown))
    return table
