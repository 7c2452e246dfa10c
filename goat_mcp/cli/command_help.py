"""How help looks: that of the program on one screen, that of a command with examples and the shared options apart."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from itertools import chain, zip_longest

import click

from goat_mcp.cli.command_table import EXAMPLES, SECTIONS, TOGETHER

COMPLETES = "_GOAT_MCP_COMPLETE"
"""The variable that the scripts of shells set, by which click knows that it is to complete."""
_COLUMN = 40
_NAME = 12
CATALOG_OPTIONS = "Catalog options"
_UNBROKEN = "\u2011"
"""A hyphen at which no line ends."""


def write_commands(formatter: click.HelpFormatter, summaries: Mapping[str, str]) -> None:
    """All commands by section: in two columns if there is room, so that they fit one screen of 80x24."""
    sections = dict(SECTIONS)
    listed = {name for names in SECTIONS.values() for name in names}
    if others := tuple(name for name in summaries if name not in listed):
        sections["Others"] = others
    if formatter.width < 2 * _COLUMN - 2:
        lines = [line for title, names in sections.items() for line in _block(title, names, summaries)]
        formatter.write("\n".join(lines) + "\n")
        return
    blocks = [_block(title, names, summaries, TOGETHER) for title, names in sections.items()]
    ways = [(blocks[:at], blocks[at:]) for at in range(len(blocks) + 1)]
    columns = [([*chain(*first)], [*chain(*second)]) for first, second in ways]
    left, right = min(columns, key=lambda both: max(map(len, both)))
    rows = zip_longest(left, right, fillvalue="")
    formatter.write("".join(f"{one:<{_COLUMN}}{other}".rstrip() + "\n" for one, other in rows))


def _block(
    title: str,
    names: tuple[str, ...],
    summaries: Mapping[str, str],
    together: Mapping[str, tuple[str, str]] | None = None,
) -> list[str]:
    """`together`: commands that share the line of another one."""
    shared = together or {}
    seconds = {second for second, _ in shared.values()}
    lines = [f"{title}:"]
    for name in names:
        if name in shared:
            second, summary = shared[name]
            lines.append(f"  {f'{name}, {second}':<{_NAME - 2}}  {summary}")
        elif name in summaries and name not in seconds:
            lines.append(f"  {name:<{_NAME}}{summaries[name]}")
    return lines


class _Formatter(click.HelpFormatter):
    """Breaks no line at a hyphen: `goat-mcp` and options are copied."""

    def write_text(self, text: str) -> None:
        super().write_text(text.replace("-", _UNBROKEN))

    def write_dl(self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2) -> None:
        super().write_dl([(term, text.replace("-", _UNBROKEN)) for term, text in rows], col_max, col_spacing)

    def getvalue(self) -> str:
        return super().getvalue().replace(_UNBROKEN, "-")


class _Context(click.Context):
    formatter_class = _Formatter


def dressed(command: click.Command, path: str) -> click.Command:
    """`command` with what all have: examples, --no-color, -h, the shared options in a section of their own.

    `path` is what one types for it, without `goat-mcp`.
    """
    if any(one.name == NO_COLOR.name for one in command.params):
        return command
    command.params.append(NO_COLOR)
    command.context_class = _Context
    if isinstance(command, click.Group):
        for name, member in command.commands.items():
            dressed(member, f"{path} {name}")
    command.format_options = partial(_write_options, command, path)
    if COMPLETES in os.environ:
        from goat_mcp.cli.completed_words import offer_words

        offer_words(command, path)
    return command


def _write_options(command: click.Command, path: str, ctx: click.Context, formatter: click.HelpFormatter) -> None:
    from goat_mcp.cli.flags import SELECTION_NAMES

    if isinstance(command, click.Group):
        with formatter.section("Commands"):
            formatter.write_dl([(name, one.get_short_help_str(limit=1000)) for name, one in command.commands.items()])
    if examples := EXAMPLES.get(path):
        with formatter.section("Examples"):
            formatter.write("".join(f"{'':{formatter.current_indent}}{line}\n" for line in examples))
    names = {one.name for one in command.params}
    shared = SELECTION_NAMES if names >= SELECTION_NAMES else frozenset[str]()
    own: list[tuple[str, str]] = []
    apart: list[tuple[str, str]] = []
    for one in command.get_params(ctx):
        if isinstance(one, click.Option) and (record := one.get_help_record(ctx)) is not None:
            (apart if one.name in shared else own).append(record)
    for title, records in (("Options", own), (CATALOG_OPTIONS, apart)):
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def _switch_off_colours(context: click.Context, option: click.Parameter, is_given: bool) -> None:
    if is_given:
        os.environ["NO_COLOR"] = "1"  # rich and the programs that we start read it there
        os.environ.pop("FORCE_COLOR", None)
        context.color = None if context.color else context.color


NO_COLOR = click.Option(
    ["--no-color"],
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_switch_off_colours,
    help="Print no colours, as with NO_COLOR=1.",
)
