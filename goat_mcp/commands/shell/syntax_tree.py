"""Bash text as tree-sitter reads it: its nodes, and the words that they stand for.

The walks need no recursion, because deep nesting is an attack. What a word means for a command is not known here.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Language, Node, Parser
from tree_sitter_bash import language

from goat_mcp.commands.shell.words import Word

_MAX_STEPS = 600
"""Of the parser's own counting: 16 KB of ordinary text take under 400, 16 KB of `a|` take 1400 and seconds."""
_MAX_PARSE_S = 1.0


@dataclass(frozen=True)
class ScriptTree:
    """A parsed script. Offsets of nodes count bytes of `source`."""

    source: bytes
    root: Node


def parse(text: str) -> ScriptTree | None:
    """Parse; errors in the script are nodes of the tree. None for text made to be slow to parse.

    A parser costs less than a microsecond and is not thread-safe: each call makes one.
    """
    source = text.encode("utf-8", "surrogatepass")
    deadline_s = time.monotonic() + _MAX_PARSE_S
    steps = 0

    def give_up(*_: object) -> bool:
        nonlocal steps
        steps += 1
        return steps > _MAX_STEPS or time.monotonic() > deadline_s

    try:
        # The parser reports its progress only for text that it asks for in pieces.
        tree = Parser(Language(language())).parse(lambda offset, _: source[offset:], progress_callback=give_up)
    except ValueError:
        return None
    return ScriptTree(source, tree.root_node)


def preorder(root: Node) -> Iterator[Node]:
    """Every node below and with `root`, parents first, in the order of the text."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(node.children))


def text_of(node: Node) -> str:
    """The node's own text."""
    return (node.text or b"").decode("utf-8", "surrogatepass")


def excerpt(node: Node, max_chars: int = 40) -> str:
    """The node's text on one short line, for a message."""
    text = " ".join(text_of(node).split())
    return text if len(text) <= max_chars else text[: max_chars - 3] + "..."


_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_SPECIAL = re.compile(r"[*?\[\]{}$`]")
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\\n])')
_ANSI_C = re.compile(
    r"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|[0-7]{1,3}|c.|.)",
    re.DOTALL,
)
_ANSI_C_LETTERS = dict(zip("ntrabfveE", "\n\t\r\a\b\f\v\x1b\x1b", strict=True))


def word_of(node: Node) -> Word:
    """The word of a node: a name, an argument, an assigned value."""
    while node.type in ("command_name", "concatenation") and node.child_count == 1:
        node = node.children[0]
    if node.type not in ("command_name", "concatenation"):
        text, literal = _part(node)
        return Word(text, literal, node.type == "process_substitution")
    texts: list[str] = []
    literal = True
    is_stream = False
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if part.type in ("command_name", "concatenation"):
            waiting.extend(reversed(part.children))
            continue
        text, exact = _part(part)
        texts.append(text)
        literal = literal and exact
        is_stream = is_stream or part.type == "process_substitution"
    return Word("".join(texts), literal, is_stream)


def bare_text(source: str) -> str:
    """An unquoted word's text after its escapes."""
    return _ESCAPED.sub(_escaped, source) if "\\" in source else source


def quoted_text(source: str) -> str:
    """The text between double quotes after its escapes; `source` has the quotes."""
    inner = source[1:-1]
    return _ESCAPED_IN_QUOTES.sub(_escaped, inner) if "\\" in inner else inner


def _part(node: Node) -> tuple[str, bool]:
    source = text_of(node)
    match node.type:
        case "word" | "number" | "variable_name" | "test_operator" | "file_descriptor":
            bare = _ESCAPED.sub("", source) if "\\" in source else source
            return bare_text(source), _SPECIAL.search(bare) is None
        case "raw_string":
            return source[1:-1], True
        case "ansi_c_string":
            return decode_ansi_c(source[2:-1])
        case "string" | "translated_string":
            exact = all(child.type in ('"', "string_content") for child in _string(node).children)
            return quoted_text(source.removeprefix("$")), exact
        case _:
            return source, False


def _string(node: Node) -> Node:
    return next((child for child in node.children if child.type == "string"), node)


def _escaped(match: re.Match[str]) -> str:
    return "" if match[1] == "\n" else match[1]


def decode_ansi_c(text: str) -> tuple[str, bool]:
    """The text inside `$'...'`, and whether all of it is known."""
    exact = True

    def decoded(match: re.Match[str]) -> str:
        nonlocal exact
        code = match[1]
        try:
            if code[0] in "xuU" and len(code) > 1:
                return chr(int(code[1:], 16))
            if code[0] in "01234567":
                return chr(int(code, 8) & 0xFF)
        except ValueError:
            exact = False
            return match[0]
        if code[0] == "c" and len(code) == 2:
            return chr(ord(code[1]) & 0x1F)
        return _ANSI_C_LETTERS.get(code, code if code in "\\'\"?" else match[0])

    whole = _ANSI_C.sub(decoded, text)
    # bash ends the word at a NUL.
    return (whole.split("\0", 1)[0], exact)
