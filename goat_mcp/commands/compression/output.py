"""The whole output of a script, compressed: each program's compressor on its own part, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from goat_mcp.commands.compression.command_detection import Printing, printing_commands
from goat_mcp.commands.compression.compressor import Compressed, Compressor
from goat_mcp.commands.compression.git_output import compress_git_diff, compress_git_log
from goat_mcp.commands.compression.git_status import compress_git_status
from goat_mcp.commands.compression.matches import NamedFiles, compress_matches
from goat_mcp.commands.compression.small_programs import (
    compress_echo,
    compress_ls,
    compress_one_line_log,
    compress_pwd,
    compress_short_status,
    compress_shown_file,
    echo_line,
)
from goat_mcp.commands.compression.unit_tests import (
    compress_cargo_test,
    compress_go_test,
    compress_jest,
    compress_pytest,
)
from goat_mcp.commands.shell.words import Words, without_global_options

_OF_GIT = {"status": compress_git_status, "diff": compress_git_diff, "log": compress_git_log, "show": compress_git_log}
_OTHER_DIFFS = ("--wo", "--color-w", "--output-i", "--line-p", "--ws-error")
"""Options, however far they are written out, with which a line that begins with a blank may have changed."""
_TEST_RUNS: dict[str, Compressor] = {
    "pytest": compress_pytest,
    "py.test": compress_pytest,
    "go": compress_go_test,
    "cargo": compress_cargo_test,
    **dict.fromkeys(("jest", "vitest"), compress_jest),
}
_OTHERS: dict[str, Compressor] = {
    "ls": compress_ls,
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg"), compress_matches),
    **dict.fromkeys(("cat", "head", "tail"), compress_shown_file),
    "echo": compress_echo,
    "pwd": compress_pwd,
}
_NODE_RUNNERS = frozenset({"npm", "pnpm", "yarn", "bun"})
_MAX_LINE_CHARS = 4096
"""No program whose output is read line by line prints longer ones; patterns take their time over such."""
_TAKES_LONG_LINES = frozenset({compress_matches, compress_shown_file, compress_echo})
_PROGRAMS = frozenset({*_TEST_RUNS, *_OTHERS, "git"})


@dataclass(frozen=True, slots=True)
class CompressedOutput:
    """`is_numbered`: some of its lines have a number that the program did not print, so it may be longer."""

    text: str
    is_numbered: bool = False


def compressed_output(
    script: str, text: str, *, failed: bool = False, directory: Path | None = None
) -> CompressedOutput | None:
    """A script's output in fewer words, and source code with line numbers; None if it stays as it is.

    `directory` is where the script began; if it is known, named files are looked for there. The output of a failed
    script stays whole unless a test run made it fail: then the failures stay, and all else must be known.
    """
    commands = printing_commands(script, _PROGRAMS)
    if not commands or not text:
        return None
    lines = text.split("\n")
    if not failed:
        return _shorter(text, _compress_parts(commands, lines, directory))
    for end in range(len(commands), 0, -1):
        # Commands behind `&&` did not run.
        if _is_test_run(commands[end - 1].words) and all(command.join == "&&" for command in commands[end:]):
            return _shorter(text, _compress_parts(commands[:end], lines, directory))
    return None


def _shorter(text: str, compressed: Compressed | None) -> CompressedOutput | None:
    if compressed is None:
        return None
    shown = "\n".join(compressed.lines)
    if not shown or not (compressed.is_numbered or len(shown) < len(text)):
        return None
    return CompressedOutput(shown, compressed.is_numbered)


def _compress_parts(commands: Sequence[Printing], lines: Sequence[str], directory: Path | None) -> Compressed | None:
    """Each command's part of the lines in turn. None unless all lines are taken."""
    kept: list[str] = []
    is_numbered = False
    at = 0
    for index, command in enumerate(commands):
        compressor = _compressor(command.words)
        end = _end_of_part(commands, index, lines, at)
        if compressor is None or end is None:
            return None
        if compressor not in _TAKES_LONG_LINES and any(len(line) > _MAX_LINE_CHARS for line in lines[at:end]):
            return None
        if compressor is compress_matches:
            compressor = partial(compress_matches, named=NamedFiles(_directory_of(command, directory)))
        elif compressor is compress_shown_file:
            is_all_of_it = _has_its_own_lines(commands, index)
            compressor = partial(
                compress_shown_file, is_all_of_it=is_all_of_it, directory=_directory_of(command, directory)
            )
        part = compressor(command.words, lines[at:end]) if end > at else Compressed((), 0)
        if part is None:
            return None
        kept.extend(part.lines)
        is_numbered |= part.is_numbered
        at += part.taken
    is_all = at == len(lines) or all(line == "" for line in lines[at:])
    return Compressed(tuple(kept), len(lines), is_numbered) if is_all else None


def _directory_of(command: Printing, start: Path | None) -> str | None:
    return None if start is None or command.directory is None else str(start / command.directory)


def _has_its_own_lines(commands: Sequence[Printing], index: int) -> bool:
    """Whether no line of another program can be among those of this one: where one begins says `echo` or the start."""
    before, after = commands[:index][-1:], commands[index + 1 :][:1]
    return all(one.words[0] in ("echo", "pwd") for one in before) and all((_echoed(one) or "").strip() for one in after)


def _echoed(command: Printing) -> str | None:
    return echo_line(command.words) if command.words[0] == "echo" else None


def _end_of_part(commands: Sequence[Printing], index: int, lines: Sequence[str], at: int) -> int | None:
    """The last possible end of a command's lines: before the next `echo`. None if another program prints its words."""
    if commands[index].words[0] == "echo":
        return len(lines)
    echoed = [echo_line(command.words) for command in commands[index + 1 :] if command.words[0] == "echo"]
    marker = next((line for line in echoed if line and line.strip()), None)
    if marker is None:
        return len(lines)
    found = [index for index in range(at, len(lines)) if lines[index] == marker]
    return found[0] if len(found) == echoed.count(marker) else None


def _compressor(words: Words) -> Compressor | None:
    name = words[0]
    if name == "git":
        return _of_git(words)
    if name in _NODE_RUNNERS:
        verb = words[2:3] if words[1:2] == ("run",) else words[1:2]
        return compress_jest if verb in (("test",), ("t",)) or (verb and verb[0].startswith("test:")) else None
    return _TEST_RUNS.get(name) or _OTHERS.get(name)


def _is_test_run(words: Words) -> bool:
    compressor = _compressor(words)
    return compressor is compress_jest or compressor in _TEST_RUNS.values()


def _of_git(words: Words) -> Compressor | None:
    verb, *rest = without_global_options(words)[1:] or ("",)
    options = {*rest}
    if any(option.startswith(_OTHER_DIFFS) for option in options):
        return None
    if verb == "log" and "--oneline" in options and not options & {"--graph", "--stat", "-p", "--patch"}:
        return compress_one_line_log
    if verb == "status" and options & {"-s", "--short", "-sb", "--porcelain"}:
        return compress_short_status
    return _OF_GIT.get(verb)
