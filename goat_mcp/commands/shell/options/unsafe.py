"""Which table speaks for a command, or none: `unknown`."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from goat_mcp.commands.shell.names import bare_name
from goat_mcp.commands.shell.options.build_tools import SINGLE_TABLES, TOOLS, tool_problem
from goat_mcp.commands.shell.options.checkers import CHECKERS
from goat_mcp.commands.shell.options.file_programs import FILE_PROGRAMS
from goat_mcp.commands.shell.options.find import find_problem
from goat_mcp.commands.shell.options.git import git_problem
from goat_mcp.commands.shell.options.runners import inner_command, runner_problem
from goat_mcp.commands.shell.options.sed import sed_problem
from goat_mcp.commands.shell.options.tar import tar_problem
from goat_mcp.commands.shell.options.text_programs import TEXT_PROGRAMS, WEB_PROGRAMS
from goat_mcp.commands.shell.options.unknown import unknown_problem
from goat_mcp.commands.shell.options.verbs import VERB_TOOLS, verb_problem


def unsafe_option(words: Sequence[str], *, named_words: int = 1, spelled: Collection[str] = ()) -> str:
    """Empty, or why a rule with a wildcard does not cover this command although it matches.

    `named_words`: how many of the first words the rule spells out (`git commit *`: 2). `spelled`: the words that it
    spells out wherever they stand.
    """
    name = bare_name(words[0])
    if problem := runner_problem(name, words, named_words):
        return problem
    if at := inner_command(name, words):
        # Spelled out by the rule, so its own table speaks for the rest.
        return unsafe_option(words[at:], named_words=named_words - at, spelled=spelled)
    problem = _problem(name, words, named_words, spelled)
    return f"{name} {problem}" if problem else ""


def _problem(name: str, words: Sequence[str], named_words: int, spelled: Collection[str]) -> str:
    arguments = words[1:]
    for tables in (TEXT_PROGRAMS, WEB_PROGRAMS, FILE_PROGRAMS, SINGLE_TABLES, CHECKERS):
        if (table := tables.get(name)) is not None:
            return table.problem(arguments)
    match name:
        case "echo":
            return ""  # it has no option that does anything but print
        case "git":
            return git_problem(words, named_words)
        case "find":
            return find_problem(arguments)
        case "sed" | "gsed":
            return sed_problem(arguments)
        case "tar" | "gtar" | "bsdtar":
            return tar_problem(arguments)
        case _ if name in VERB_TOOLS:
            return verb_problem(name, words, named_words, spelled)
        case _ if name in TOOLS:
            return tool_problem(name, arguments, named_words)
        case _:
            return unknown_problem(words, named_words, spelled)
