"""The whole output of a script in fewer words: each of its programs' compressors on its own part, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from goat_mcp.commands.compression.brief_output import press_one_line_log, press_pwd, press_short_status
from goat_mcp.commands.compression.cargo_test import press_cargo_test
from goat_mcp.commands.compression.command_detection import Printing, printing_commands
from goat_mcp.commands.compression.compressed import Compressed, Compressor
from goat_mcp.commands.compression.echo_output import echo_line, press_echo
from goat_mcp.commands.compression.git_diff import press_git_diff
from goat_mcp.commands.compression.git_log import press_git_log
from goat_mcp.commands.compression.git_status import press_git_status
from goat_mcp.commands.compression.go_test import press_go_test
from goat_mcp.commands.compression.jest_run import press_jest
from goat_mcp.commands.compression.ls import press_ls
from goat_mcp.commands.compression.matches import NOBODY_KNOWS, press_matches
from goat_mcp.commands.compression.named_files import NamedFiles
from goat_mcp.commands.compression.pytest_run import press_pytest
from goat_mcp.commands.compression.shown_file import press_shown_file
from goat_mcp.commands.shell.names import Words

_OF_GIT = {"status": press_git_status, "diff": press_git_diff, "log": press_git_log, "show": press_git_log}
_GIT_OPTIONS_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})
_OTHER_DIFFS = ("--wo", "--color-w", "--output-i", "--line-p", "--ws-error")
"""Options, however far they are written out, with which a line that begins with a blank may have changed."""
_TEST_RUNS: dict[str, Compressor] = {
    "pytest": press_pytest,
    "py.test": press_pytest,
    "go": press_go_test,
    "cargo": press_cargo_test,
    **dict.fromkeys(("jest", "vitest"), press_jest),
}
_OTHERS: dict[str, Compressor] = {
    "ls": press_ls,
    **dict.fromkeys(("grep", "egrep", "fgrep", "rg"), press_matches),
    **dict.fromkeys(("cat", "head", "tail"), press_shown_file),
    "echo": press_echo,
    "pwd": press_pwd,
}
_NODE_RUNNERS = frozenset({"npm", "pnpm", "yarn", "bun"})
_MAX_LINE_CHARS = 4096
"""No program whose output is read line by line prints longer ones; patterns take their time over such."""
_TAKES_LONG_LINES = frozenset({press_matches, press_shown_file, press_echo})
_PROGRAMS = frozenset({*_TEST_RUNS, *_OTHERS, "git"})


def compressed_output(script: str, text: str, *, failed: bool = False, directory: Path | None = None) -> str | None:
    """What to show of a script's output in its place; None: the output stays as it is.

    `directory` is where the script began; where it is known, files that are named are looked for. Of a failed script
    all stays unless a test run failed it: there the failures stay, and all else must be known.
    """
    commands = printing_commands(script, _PROGRAMS)
    if not commands or not text:
        return None
    lines = text.split("\n")
    if not failed:
        return _shorter(text, _press(commands, lines, directory))
    for end in range(len(commands), 0, -1):
        # What stands behind `&&` did not run any more.
        if _is_test_run(commands[end - 1].words) and all(command.join == "&&" for command in commands[end:]):
            return _shorter(text, _press(commands[:end], lines, directory))
    return None


def _shorter(text: str, pressed: Sequence[str] | None) -> str | None:
    if pressed is None:
        return None
    shown = "\n".join(pressed)
    return shown if shown and len(shown) < len(text) else None


def _press(commands: Sequence[Printing], lines: Sequence[str], directory: Path | None) -> list[str] | None:
    """Every command's part of the lines, one after the other. None unless all of them are taken."""
    kept: list[str] = []
    at = 0
    for index, command in enumerate(commands):
        compressor = _compressor(command.words)
        end = _end_of_part(commands, index, lines, at)
        if compressor is None or end is None:
            return None
        if compressor not in _TAKES_LONG_LINES and any(len(line) > _MAX_LINE_CHARS for line in lines[at:end]):
            return None
        if compressor is press_matches:
            compressor = partial(press_matches, there=_there(directory, command))
        pressed = compressor(command.words, lines[at:end]) if end > at else Compressed((), 0)
        if pressed is None:
            return None
        kept.extend(pressed.lines)
        at += pressed.taken
    return kept if at == len(lines) or all(line == "" for line in lines[at:]) else None


def _there(begun_in: Path | None, command: Printing) -> NamedFiles:
    if begun_in is None or command.directory is None:
        return NOBODY_KNOWS
    return NamedFiles(str(begun_in / command.directory))


def _end_of_part(commands: Sequence[Printing], index: int, lines: Sequence[str], at: int) -> int | None:
    """Where a command's lines end at the latest: before those of the next `echo`. None: some program prints its words,
    too."""
    if commands[index].words[0] == "echo":
        return len(lines)
    spoken = [echo_line(command.words) for command in commands[index + 1 :] if command.words[0] == "echo"]
    marker = next((line for line in spoken if line and line.strip()), None)
    if marker is None:
        return len(lines)
    found = [place for place in range(at, len(lines)) if lines[place] == marker]
    return found[0] if len(found) == spoken.count(marker) else None


def _compressor(words: Words) -> Compressor | None:
    name = words[0]
    if name == "git":
        return _of_git(words)
    if name in _NODE_RUNNERS:
        verb = words[2:3] if words[1:2] == ("run",) else words[1:2]
        return press_jest if verb in (("test",), ("t",)) or (verb and verb[0].startswith("test:")) else None
    return _TEST_RUNS.get(name) or _OTHERS.get(name)


def _is_test_run(words: Words) -> bool:
    compressor = _compressor(words)
    return compressor is press_jest or compressor in _TEST_RUNS.values()


def _of_git(words: Words) -> Compressor | None:
    rest = iter(words[1:])
    for word in rest:
        if word in _GIT_OPTIONS_WITH_VALUE:
            next(rest, None)
        elif not word.startswith("-"):
            options = {*rest}
            if any(option.startswith(_OTHER_DIFFS) for option in options):
                return None
            if word == "log" and "--oneline" in options and not options & {"--graph", "--stat", "-p", "--patch"}:
                return press_one_line_log
            if word == "status" and options & {"-s", "--short", "-sb", "--porcelain"}:
                return press_short_status
            return _OF_GIT.get(word)
    return None
