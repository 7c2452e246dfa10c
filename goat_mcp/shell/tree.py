"""Bash text as tree-sitter reads it, and walks over the tree that need no recursion (deep nesting is an attack)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tree_sitter import Language, Node, Parser
from tree_sitter_bash import language


@dataclass(frozen=True)
class ScriptTree:
    """A parsed script. Offsets of nodes count bytes of `source`."""

    source: bytes
    root: Node


def parse(text: str) -> ScriptTree:
    """Parse; errors are nodes of the tree, never exceptions. A parser costs microseconds and is not thread-safe."""
    source = text.encode("utf-8", "surrogatepass")
    return ScriptTree(source, Parser(Language(language())).parse(source).root_node)


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
