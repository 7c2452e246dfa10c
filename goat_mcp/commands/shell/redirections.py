"""Nodes of a script that open files or set variables, and where in a script a command stands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from tree_sitter import Node

from goat_mcp.commands.shell.syntax_tree import ScriptTree, text_of, word_of
from goat_mcp.commands.shell.words import Word

_ASSIGNED = ("variable_assignment", "for_statement")
_ASSIGNED_BY_DEFAULT = re.compile(r"\$\{(\w+):?=")
REPEATING = frozenset({"for_statement", "c_style_for_statement", "while_statement", "function_definition"})
_UNKNOWN = Word("`", literal=False)


class Opened(NamedTuple):
    """A file that a redirection opens."""

    word: Word
    writes: bool


class Assigned(NamedTuple):
    """A value of a variable."""

    name: str
    value: Word


def opened_by(redirect: Node, tree: ScriptTree) -> Iterator[Opened]:
    """The file of `< f`, `> f`, `<> f`; nothing for `2>&1`."""
    target = redirect.child_by_field_name("destination")
    if target is None or target.type == "number":
        return
    operator = tree.source[redirect.start_byte : target.start_byte].decode("utf-8", "replace")
    word = word_of(target)
    if word.text != "-":
        yield Opened(word, writes=">" in operator)


def words_after(redirect: Node) -> list[Node]:
    """`push` of `git >log push`: words of the command, which our grammar adds to the redirection."""
    if redirect.type == "heredoc_redirect":
        return redirect.children_by_field_name("argument")
    return redirect.children_by_field_name("destination")[1:]


def assigned_by(node: Node) -> Iterator[Assigned]:
    """The values of a variable, from an assignment, a loop or `${x:=value}`."""
    if node.type == "expansion":
        if found := _ASSIGNED_BY_DEFAULT.match(text_of(node)):
            yield Assigned(found[1], _UNKNOWN)
        return
    if node.type not in _ASSIGNED:
        return
    variable = node.child_by_field_name("name") or node.child_by_field_name("variable")
    name = "" if variable is None else text_of(variable).partition("[")[0]
    values = list(values_of(node))
    if any(child.type == "+=" for child in node.children) or (not values and node.type == "for_statement"):
        # `x+=more`, `for x; do`
        yield Assigned(name, _UNKNOWN)
    elif not values:
        yield Assigned(name, Word("", literal=True))
    yield from (Assigned(name, value) for value in values)


def values_of(node: Node) -> Iterator[Word]:
    """The values that an assignment or a loop writes."""
    if node.type not in _ASSIGNED:
        return
    for value in node.children_by_field_name("value"):
        for one in value.named_children if value.type == "array" else (value,):
            yield word_of(one)


def is_repeated(node: Node) -> bool:
    """Whether a command may run more than once: in a loop or a function."""
    above = node.parent
    while above is not None:
        if above.type in REPEATING:
            return True
        above = above.parent
    return False


def is_piped(command: Node) -> bool:
    """Whether a command reads the output of another one."""
    above, node = command.parent, command
    while above is not None and above.type != "command_substitution":
        if above.type == "pipeline" and above.named_children[0] != node:
            return True
        above, node = above.parent, above
    return False


def is_redirection(node: Node) -> bool:
    return node.type in ("file_redirect", "heredoc_redirect")
