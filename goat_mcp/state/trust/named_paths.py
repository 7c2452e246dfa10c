"""Paths in a settings file: a relative one lies beside that file, wherever the process was started."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, cast


def with_absolute_paths(tree: Mapping[str, Any], folder: Path, path_keys: Collection[str]) -> dict[str, Any]:
    """A copy of `tree` in which what the keys name is below `folder`. Values that are no paths stay as they are."""
    return {key: _absolute(value, folder, path_keys, key) for key, value in tree.items()}


def paths_in(tree: Mapping[str, Any], path_keys: Collection[str]) -> Iterator[Path]:
    """What the keys name in a tree whose paths are absolute."""
    for key in path_keys:
        value: Any = tree
        for level in key.split("."):
            value = cast("Mapping[str, Any]", value).get(level) if isinstance(value, Mapping) else None
        for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
            if isinstance(one, str) and one:
                yield Path(one)


def _absolute(value: Any, folder: Path, path_keys: Collection[str], key: str) -> Any:
    if isinstance(value, dict):
        below = cast("dict[str, Any]", value).items()
        return {name: _absolute(inner, folder, path_keys, f"{key}.{name}") for name, inner in below}
    if key not in path_keys:
        return value
    if isinstance(value, list):
        return [_absolute(one, folder, path_keys, key) for one in cast("list[Any]", value)]
    return str(folder / Path(value).expanduser()) if isinstance(value, str) and value else value
