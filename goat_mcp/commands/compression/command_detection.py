"""The commands of a script that print, in order: whose output is it? Read with the parser of the rules."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tree_sitter import Node

from goat_mcp.commands.shell.syntax_tree import parse, text_of, word_of
from goat_mcp.commands.shell.words import MAX_SCRIPT_BYTES, Word, Words, bare_name

Join = Literal[";", "&&"]

_SILENT = frozenset(
    {"cd", "export", "set", "unset", "true", ":", "mkdir", "touch", "sleep", "rm", "cp", "mv", "ln", "chmod", "source"}
    | {".", "shopt", "umask", "kill"}
)
"""They print nothing unless they fail."""
_PASS_LINES_ON = frozenset({"head", "tail", "cat"})
_PRINTS_BY_THE_LINE = frozenset({"ls", "grep", "egrep", "fgrep", "rg"})
"""Any selection of their lines is as good as all."""
_BEFORE_A_PROGRAM = frozenset(
    {"timeout", "env", "nice", "ionice", "time", "command", "stdbuf", "nohup", "xargs", "uv", "poetry", "pdm", "pipenv"}
    | {"rye", "hatch", "npx", "bunx", "pnpm", "yarn"}
)
_STAY_WHERE_THEY_ARE = frozenset({"timeout", "nice", "ionice", "time", "command", "stdbuf", "nohup", "xargs"})
"""Of those, the ones that keep the directory. The others may change it."""
_CHANGE_DIRECTORY = frozenset({"cd", "source", "."})
_PYTHON = frozenset({"python", "python3"})
_MAX_PRINTING = 40
_STDOUT = frozenset({"", "1"})


class _NotKnown(Exception):
    """It is not known what part of the script prints."""


@dataclass(frozen=True, slots=True)
class Printing:
    """A command whose output is shown: its words, the bare name first, and the operator before it.

    `directory` is where it runs, relative to where the script begins; None if unknown.
    """

    words: Words
    join: Join
    directory: str | None = ""


def printing_commands(script: str, programs: frozenset[str]) -> tuple[Printing, ...]:
    """The commands that print, in order; nothing if they cannot be known.

    `programs` are looked for behind a wrapper such as `timeout 60`. A pipeline counts as its last program. If that only
    picks lines (`head`, `tail`), it counts as the program before, if any selection of its lines is as good as all.
    """
    if len(script.encode("utf-8", "surrogatepass")) > MAX_SCRIPT_BYTES:
        return ()
    tree = parse(script)
    if tree is None or tree.root.has_error:
        return ()
    reader = _Reader(programs)
    try:
        reader.statements(tree.root.children, ";")
    except _NotKnown:
        return ()
    return tuple(reader.found) if len(reader.found) <= _MAX_PRINTING else ()


class _Reader:
    """Collects commands on its walk; the parser's limits bound the depth of lists."""

    def __init__(self, programs: frozenset[str]) -> None:
        self._programs = programs
        self.found: list[Printing] = []
        self._directory: str | None = ""
        self._directory_unknown = False

    def statements(self, nodes: Sequence[Node], join: Join) -> None:
        waiting: list[tuple[Node, Join]] = []
        for node in _flat(nodes):
            if node.type in (";", "\n", "comment"):
                join = ";"
            elif node.type == "&&":
                join = "&&"
            elif node.type == "||":
                raise _NotKnown
            else:
                waiting.append((node, join))
        for node, joined in waiting:
            self._directory_unknown = False
            words = self._statement(node)
            if words:
                directory = None if self._directory_unknown else self._directory
                self.found.append(Printing(words, joined, directory))

    def _statement(self, node: Node) -> Words:
        """The words of the command that prints; empty if none does."""
        if node.type == "redirected_statement":
            hides = any(_takes_stdout_away(child) for child in node.children if child.type == "file_redirect")
            words = self._statement(_only(node, ("command", "pipeline")))
            return () if hides else words
        if node.type == "pipeline":
            return self._pipeline(node)
        if node.type == "command":
            return self._words(node)
        if node.type in ("variable_assignment", "variable_assignments", "declaration_command", "unset_command"):
            return ()
        raise _NotKnown

    def _pipeline(self, node: Node) -> Words:
        parts = [child for child in node.children if child.type not in ("|", "|&", "\n", "comment")]
        last = self._statement(parts[-1])
        if last and last[0] == "rg":
            last = (*last, "-")  # without a path it reads the pipe, as grep does
        end: Words = ()
        for part in reversed(parts[:-1]):
            if not (last and last[0] in _PASS_LINES_ON and not _names_a_file(last)):
                break
            before = self._statement(part)
            if not before or before[0] not in (_PRINTS_BY_THE_LINE | _PASS_LINES_ON):
                break
            if last[0] == "tail":
                end = last
            last = before
        # Which lines of a file the end of a pipe shows is not known.
        return end if end and last[0] in _PASS_LINES_ON else last

    def _words(self, command: Node) -> Words:
        found = [
            Word("==", literal=True) if child.type == "==" else word_of(child)  # no word to the grammar
            for child in command.children
            if child.type not in ("variable_assignment", "file_redirect", "herestring_redirect", "heredoc_redirect")
        ]
        if any(_takes_stdout_away(child) for child in command.children if child.type == "file_redirect"):
            return ()
        if not found or not found[0].literal:
            raise _NotKnown
        words = (bare_name(found[0].text), *(word.text for word in found[1:]))
        if words[0] in _CHANGE_DIRECTORY:
            self._directory = self._directory_after(words[0], found[1:])
        if words[0] in _SILENT:
            return ()
        if words[0] == "echo" and not all(word.literal for word in found):
            raise _NotKnown
        return self._behind_wrappers(words)

    def _directory_after(self, name: str, arguments: Sequence[Word]) -> str | None:
        """The shell's directory afterwards; only `cd` with one argument says so."""
        if name != "cd" or self._directory is None or len(arguments) != 1 or not arguments[0].literal:
            return None
        target = arguments[0].text
        return None if not target or target[0] in "-~+" else posixpath.join(self._directory, target)

    def _behind_wrappers(self, words: Words) -> Words:
        if words[0] in _PYTHON and words[1:2] == ("-m",) and words[2:]:
            return words[2:]
        if words[0] in _BEFORE_A_PROGRAM:
            for at in range(1, len(words)):
                name = bare_name(words[at])
                if name in _PYTHON or name in self._programs:
                    self._directory_unknown |= words[0] not in _STAY_WHERE_THEY_ARE
                    return self._behind_wrappers((name, *words[at + 1 :]))
        return words


def _flat(nodes: Sequence[Node]) -> list[Node]:
    """The statements and operators of nested lists, in order."""
    flat: list[Node] = []
    waiting = list(reversed(nodes))
    while waiting:
        node = waiting.pop()
        if node.type == "list":
            waiting.extend(reversed(node.children))
        else:
            flat.append(node)
    return flat


def _only(node: Node, types: tuple[str, ...]) -> Node:
    for child in node.children:
        if child.type in types:
            return child
    raise _NotKnown


def _takes_stdout_away(redirect: Node) -> bool:
    """`> file`, `1>> file`, `&> file`; not `2>&1`, `2>/dev/null` or `< file`."""
    descriptor = next((text_of(child) for child in redirect.children if child.type == "file_descriptor"), "")
    operator = next(
        (text_of(child) for child in redirect.children if "<" in text_of(child) or ">" in text_of(child)), ""
    )
    if operator.startswith("<"):
        return False
    return operator.startswith("&>") or (descriptor in _STDOUT and text_of(redirect).strip() not in ("1>&2", ">&2"))


def _names_a_file(words: Words) -> bool:
    """Whether `head`, `tail` or `cat` reads a file and not the pipe."""
    takes_value = False
    for word in words[1:]:
        if takes_value:
            takes_value = False
        elif word in ("-n", "-c", "--lines", "--bytes"):
            takes_value = True
        elif not word.startswith("-") or word == "-":
            return word != "-"
    return False
