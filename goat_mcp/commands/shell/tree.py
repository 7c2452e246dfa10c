"""Bash text as tree-sitter reads it, and walks over the tree that need no recursion (deep nesting is an attack)."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Language, Node, Parser
from tree_sitter_bash import language

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
