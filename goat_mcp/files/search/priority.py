"""goa's order of search results: source code, then configuration, then documents and data, then media.

A user's `search_priority.json` can change it, in three forms: `{"md": 0, "svg": 1}` moves kinds of files among the
built-in tiers (0 source code, 1 configuration, 2 documents and data, 3 unknown, 4 media). `[["md"], ["py", "go"]]`,
`{"tiers": [...]}` or `{"docs": ["md"], "code": ["py"]}` names what comes first, tier by tier; all other kinds follow in
their usual order. Source: goa, `~/.goa/search_priority.json`.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

_TIERS = (
    "go py rs js jsx ts tsx mjs cjs java kt kts scala c h cc cpp cxx hpp hh cs swift m mm rb php pl pm lua r jl dart "
    "ex exs erl hrl hs ml mli fs fsx clj cljs groovy zig nim v vue svelte sh bash zsh fish ps1 bat sql asm s proto pyi",
    "json json5 jsonc yaml yml toml ini cfg conf env properties xml gradle cmake mk mod lock tf hcl nix editorconfig",
    "md mdx rst txt adoc org tex csv tsv html htm css scss sass less ipynb log diff patch jsonl ndjson",
    "",
    "png jpg jpeg gif webp svg ico bmp tif tiff pdf mp3 mp4 wav ogg flac mov avi mkv webm woff woff2 ttf otf zip gz",
)
_TIER_OF = {extension: tier for tier, extensions in enumerate(_TIERS) for extension in extensions.split()}
_UNKNOWN = _TIERS.index("")
_MAX_BYTES = 1024 * 1024
_MAX_TIER = 1000


class PriorityOrder:
    """Which kind of file comes before which."""

    def __init__(self, tier_of: Mapping[str, int] = _TIER_OF, unknown: int = _UNKNOWN, problem: str = "") -> None:
        """`tier_of` by extension without its dot, in lower case. `problem`: why this is not the order that the user's
        file wants."""
        self.problem = problem
        self._tier_of = tier_of
        self._unknown = unknown

    def with_tiers(self, tier_of: Mapping[str, int]) -> PriorityOrder:
        """The same order but for these kinds; 0 is source code, 4 is media."""
        return PriorityOrder({**self._tier_of, **tier_of}, self._unknown)

    def after(self, tiers: Sequence[Sequence[str]]) -> PriorityOrder:
        """These kinds first, tier by tier, then all others in the order they had."""
        moved = {kind: tier + len(tiers) for kind, tier in self._tier_of.items()}
        first = {kind: tier for tier, kinds in reversed([*enumerate(tiers)]) for kind in kinds}
        return PriorityOrder({**moved, **first}, self._unknown + len(tiers))

    def tier(self, path: str) -> int:
        """0 is shown first. Unknown kinds come after documents and before media. Source: goa `search_priority.json`."""
        suffix = path.rsplit("/", 1)[-1].lower()
        while "." in suffix:
            suffix = suffix.split(".", 1)[1]
            if (found := self._tier_of.get(suffix)) is not None:
                return found
        return self._unknown


class SearchPriority:
    """The order in force: the built-in one, or what the first file that is there makes of it, read when it changed."""

    def __init__(self, files: Sequence[Path] = ()) -> None:
        self._files = files
        self._known: tuple[tuple[Any, ...], PriorityOrder] = ((), PriorityOrder())

    def order(self) -> PriorityOrder:
        """Blocking; may be asked in several threads."""
        for path in self._files:
            try:
                found = os.stat(path)  # noqa: PTH116  # before each search
            except (OSError, ValueError):
                continue
            identity = (path, found.st_mtime_ns, found.st_size, found.st_ino)
            known, order = self._known
            if known != identity:
                order = read_order(path, PriorityOrder())
                self._known = (identity, order)
            return order
        return PriorityOrder()


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
