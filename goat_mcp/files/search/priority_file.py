"""`search_priority.json`: the user's own order of search results, in three forms that say the same in other ways.

`{"md": 0, "svg": 1}` moves kinds of files among the built-in tiers (0 source code, 1 configuration, 2 documents and
data, 3 what is not known, 4 media). `[["md"], ["py", "go"]]`, `{"tiers": [...]}` or `{"docs": ["md"], "code": ["py"]}`
names what comes first, tier by tier; all else follows as it would. Source: goa, `~/.goa/search_priority.json`.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from goat_mcp.files.search.priority_order import PriorityOrder

_MAX_BYTES = 1024 * 1024
_MAX_TIER = 1000


class _Unusable(Exception):
    """Why, for a person."""


def read_order(path: Path, built_in: PriorityOrder) -> PriorityOrder:
    """What a file makes of the built-in order. A file that cannot be used changes nothing, and the order says why."""
    try:
        return _order(_loaded(path), built_in)
    except _Unusable as why:
        return PriorityOrder(problem=f"{path}: {why}; the built-in order holds")


def _loaded(path: Path) -> Any:
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise _Unusable("is no file")
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as problem:
        raise _Unusable(f"cannot be read: {problem.strerror}") from None
    if len(content) > _MAX_BYTES:
        raise _Unusable("is over 1 MB long")
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as problem:
        raise _Unusable(f"is no JSON ({problem})") from None


def _order(given: Any, built_in: PriorityOrder) -> PriorityOrder:
    if isinstance(given, dict):
        members = cast("dict[str, Any]", given)
        if list(members) == ["tiers"]:
            return _order(members["tiers"], built_in)
        if members and all(isinstance(value, list) for value in members.values()):
            return built_in.after([_kinds(name, members[name]) for name in _in_order(members)])
        return built_in.with_tiers({_kind(name): _tier(name, tier) for name, tier in members.items()})
    if isinstance(given, list):
        tiers = cast("list[Any]", given)
        return built_in.after([_kinds(f"tier {number}", tier) for number, tier in enumerate(tiers, 1)])
    raise _Unusable(f"wants tiers by extension, or lists of extensions; got {_shown(given)}")


def _in_order(members: Mapping[str, Any]) -> list[str]:
    """The tiers' names as they stand, or by their numbers."""
    return sorted(members, key=int) if all(name.isdecimal() for name in members) else list(members)


def _kinds(name: str, given: Any) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(kind, str) for kind in cast("list[Any]", given)):
        raise _Unusable(f"{name[:40]} wants a list of extensions; got {_shown(given)}")
    return [_kind(kind) for kind in cast("list[str]", given)]


def _kind(given: str) -> str:
    kind = given.strip().lower().removeprefix("*").removeprefix(".")
    if not kind or "/" in kind:
        raise _Unusable(f"{given[:40]!r} is no extension")
    return kind


def _tier(name: str, given: Any) -> int:
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= _MAX_TIER:
        raise _Unusable(f"{name[:40]!r} wants a tier from 0 to {_MAX_TIER}; got {_shown(given)}")
    return given


def _shown(given: Any) -> str:
    return json.dumps(given)[:60]
