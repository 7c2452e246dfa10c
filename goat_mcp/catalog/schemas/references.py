"""What a local reference in a schema points to. Nothing is ever fetched: a remote one points nowhere (SCH-4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import unquote

DATA_KEYWORDS = frozenset({"const", "enum", "default", "examples", "example"})
"""What is below these is data and no schema."""
_MAX_STEPS = 50_000


class Local:
    """The references of one schema."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._named: dict[str, Any] | None = None

    def target(self, reference: str) -> Any:
        """The schema a reference names; None if this document has none. Raises nothing."""
        base, _, fragment = reference.partition("#")
        start: Any = self._document
        if base and base != self._document.get("$id"):
            start = self._names().get(base)
        if not fragment:
            return start
        if fragment.startswith("/"):
            return _walked(start, fragment)
        return self._names().get(f"#{fragment}")

    def _names(self) -> dict[str, Any]:
        """What has an `$id` or an anchor of its own."""
        if self._named is None:
            self._named = {}
            waiting: list[Any] = [self._document]
            for _ in range(_MAX_STEPS):
                if not waiting:
                    break
                node = waiting.pop()
                if isinstance(node, dict):
                    schema = cast("dict[str, Any]", node)
                    for key, mark in (("$id", ""), ("$anchor", "#"), ("$dynamicAnchor", "#")):
                        if isinstance(name := schema.get(key), str):
                            self._named.setdefault(mark + name, schema)
                    waiting += [child for key, child in schema.items() if key not in DATA_KEYWORDS]
                elif isinstance(node, list):
                    waiting += cast("list[Any]", node)
        return self._named


def is_definition(reference: str) -> bool:
    """Whether it points to what stays where it is when the root is folded: a definition, or a name of its own."""
    return reference.startswith(("#/$defs/", "#/definitions/")) or (
        reference[:1] == "#" and reference[1:2] not in ("", "/")
    )


def _walked(node: Any, pointer: str) -> Any:
    for token in pointer.split("/")[1:]:
        key = unquote(token).replace("~1", "/").replace("~0", "~")
        if isinstance(node, dict):
            node = cast("dict[str, Any]", node).get(key)
        elif isinstance(node, list):
            items = cast("list[Any]", node)
            node = (
                items[int(key)] if key.isascii() and key.isdigit() and len(key) < 6 and int(key) < len(items) else None
            )
        else:
            return None
    return node


def expanded_size(schema: object, most: int) -> int:
    """How many subschemas there are once every local reference is replaced by what it names, counted to `most` + 1.

    A definition that comes back to itself counts once on the way round.
    """
    root = id(schema)
    local = Local(cast("dict[str, Any]", schema) if isinstance(schema, dict) else {})
    known: dict[int, int] = {}
    open_now: set[int] = set()
    # Post-order with a stack of our own: first all below a node, then the node.
    waiting: list[tuple[Any, bool]] = [(cast("Any", schema), False)]
    while waiting:
        node, is_below_done = waiting.pop()
        is_schema = _is_object(node)
        below = _below(node, local)
        if is_below_done:
            open_now.discard(id(node))
            known[id(node)] = min(is_schema + sum(known.get(id(child), 0) for child in below), most + 1)
        elif id(node) not in known and id(node) not in open_now:
            open_now.add(id(node))
            waiting.append((node, True))
            waiting += [(child, False) for child in below]
    return known.get(root, 0)


def _is_object(node: Any) -> bool:
    return isinstance(node, dict)


def _below(node: Any, local: Local) -> list[Any]:
    """The objects and lists right below a node, and what it refers to."""
    if isinstance(node, list):
        return [child for child in cast("list[Any]", node) if isinstance(child, dict | list)]
    if not isinstance(node, dict):
        return []
    schema = cast("dict[str, Any]", node)
    children: list[Any] = [
        child for key, child in schema.items() if isinstance(child, dict | list) and key not in DATA_KEYWORDS
    ]
    reference = schema.get("$ref")
    target = local.target(reference) if isinstance(reference, str) else None
    return [*children, target] if isinstance(target, dict) else children
