"""How results look on a terminal: tables and colour for people, plain text for pipes, nothing a server can forge."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:  # rich is loaded when something is printed
    from rich.console import Console
    from rich.table import Table

PIPE_WIDTH = 120
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_MAX_NAME_WIDTH = 40
_MIN_LAST_WIDTH = 20


def console(*, stderr: bool = False) -> Console:
    """A console that obeys NO_COLOR, FORCE_COLOR and TERM=dumb."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(stderr=stderr, highlight=False, width=None if stream.isatty() else PIPE_WIDTH)


def escaped(text: str) -> str:
    """`text` with control and direction characters made visible: servers write it, a terminal would obey it."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found.group()):02x}", text)


def print_table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table on a terminal, tab-separated lines without headers elsewhere. Nothing if there are no rows."""
    if not rows:
        return
    out = console()
    if out.is_terminal:
        out.print(catalog_table(out, headers, rows))
    else:
        click.echo("\n".join("\t".join(escaped(cell).replace("\n", " ") for cell in row) for row in rows))


def confirmed(question: str) -> bool:
    """Whether the person at the terminal answers with yes."""
    click.echo(f"{question} Type yes: ", err=True, nl=False)
    return sys.stdin.readline().strip().lower() == "yes"


def catalog_table(out: Console, headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table whose first column is a name and whose last one is cut to what is left of the line."""
    from rich.table import Table
    from rich.text import Text

    widths = [max(len(header), *(len(row[at]) for row in rows)) for at, header in enumerate(headers[:-1])]
    widths[0] = min(widths[0], _MAX_NAME_WIDTH)
    last = max(_MIN_LAST_WIDTH, out.width - sum(widths) - len(widths))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for at, header in enumerate(headers):
        width = last if at == len(widths) else widths[at]
        justify = "right" if header == "tokens" else "left"
        style = "cyan" if at == 0 else ""
        table.add_column(header, no_wrap=True, overflow="ellipsis", width=width, justify=justify, style=style)
    for row in rows:
        table.add_row(*(Text(escaped(cell)) for cell in row))
    return table
