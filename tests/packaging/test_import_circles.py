"""No two modules import each other, directly or through others: also not inside functions or for types only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import goat_mcp

PACKAGE = Path(goat_mcp.__file__).parent


def modules() -> dict[str, Path]:
    found: dict[str, Path] = {}
    for path in PACKAGE.rglob("*.py"):
        parts = ("goat_mcp", *path.relative_to(PACKAGE).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(tree: ast.AST, known: Mapping[str, object]) -> Iterator[str]:
    """The modules that are imported by name anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.module in known:
            assert not node.level, "imports are absolute"
            for alias in node.names:
                part = f"{node.module}.{alias.name}"
                yield part if part in known else str(node.module)


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Each set of modules that reach each other, after Tarjan."""
    found: list[list[str]] = []
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        stack.append(module)
        for other in graph[module]:
            if other not in index:
                visit(other)
                lowest[module] = min(lowest[module], lowest[other])
            elif other in stack:
                lowest[module] = min(lowest[module], index[other])
        if lowest[module] == index[module]:
            at = stack.index(module)
            members, stack[at:] = stack[at:], []
            if len(members) > 1 or module in graph[module]:
                found.append(sorted(members))

    for module in graph:
        if module not in index:
            visit(module)
    return found


def test_a_circle_is_seen_however_long_it_is() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": {"e"}}) == [["a", "b", "c"], ["e"]]


def test_no_modules_import_each_other() -> None:
    known = modules()
    graph = {name: set(imported(ast.parse(path.read_text("utf-8")), known)) for name, path in known.items()}

    assert circles(graph) == []
