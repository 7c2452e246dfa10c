"""A project's settings file and all it names: one content, one hash, trusted whole or not at all (R-CONF-1)."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

from goat_mcp.state.trust.settings_file import MAX_NAMED_BYTES, BrokenFile, SettingsFile, find_project_file, read_bytes
from goat_mcp.state.trust.store import TrustStore


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


MAX_FILES = 1_000


def folder_contents(folder: Path) -> dict[Path, bytes]:
    """Every file below, by path. Raises `BrokenFile`: for a link too, since what it leads to may change unseen.

    Compiled Python is left out: what is made of a source is made again where the source changes.
    """
    found: dict[Path, bytes] = {}
    size = 0
    for where, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name != "__pycache__")
        for name in (*names, *sorted(files)):
            path = Path(where) / name
            if path.is_symlink():
                raise BrokenFile(f"{path} is a symbolic link; put the file itself there")
        for name in sorted(files):
            path = Path(where) / name
            found[path] = read_bytes(path)
            size += len(found[path])
            if len(found) > MAX_FILES or size > MAX_NAMED_BYTES:
                raise BrokenFile(f"{folder}: holds more than {MAX_FILES} files, or {MAX_NAMED_BYTES} bytes")
    return found


DENIALS = (("permissions", "deny"), ("catalog", "deny"))


def denials_of(file: SettingsFile) -> dict[str, list[str]]:
    """The lists in it that deny, by key. Raises `BrokenFile` for one that cannot be understood: it may deny much."""
    found: dict[str, list[str]] = {}
    for part, name in DENIALS:
        below = file.tree.get(part)
        if below is None:
            continue
        if not isinstance(below, dict):
            raise BrokenFile(f"{file.path}: {part}: wants keys of its own, got {type(below).__name__}")
        value: Any = cast("dict[str, Any]", below).get(name)
        entries = cast("list[Any]", value) if isinstance(value, list) else [] if value is None else [value]
        for entry in entries:
            if not isinstance(entry, str) or not entry.strip():
                raise BrokenFile(f"{file.path}: {part}.{name}: wants texts, got {_shown(entry)}")
        if entries:
            found[f"{part}.{name}"] = cast("list[str]", entries)
    return found


def says_more(file: SettingsFile) -> bool:
    """Whether there is anything in it but denials."""
    rest = dict(file.tree)
    for part, name in DENIALS:
        below = rest.get(part)
        if isinstance(below, Mapping):
            rest[part] = {key: value for key, value in cast("Mapping[str, Any]", below).items() if key != name}
    return any(value not in (None, {}) for value in rest.values())


def _shown(entry: Any) -> str:
    return "an empty text" if isinstance(entry, str) else type(entry).__name__


NOT_READ = frozenset({"workspace", "audit.path", "metrics.token_file", "sandbox_read", "sandbox_write"})
"""Settings whose paths are places to work in or to write to. All others name files that are obeyed."""


@dataclass(frozen=True)
class ProjectSettings:
    """A project's file as it is now. `contents` are the files it names, read once."""

    file: SettingsFile
    tree: Mapping[str, Any]
    """All of it, with absolute paths."""
    contents: Mapping[Path, bytes]

    @property
    def sha256(self) -> str:
        """Of the file alone if it names no other, as `sha256sum` prints it; else of the hashes of all."""
        if not self.contents:
            return self.file.sha256
        lines = ["goat-mcp trust 1", self.file.sha256]
        lines += [f"{hashlib.sha256(data).hexdigest()}  {path}" for path, data in sorted(self.contents.items())]
        return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogateescape")).hexdigest()


@dataclass(frozen=True)
class ProjectSay:
    """What counts of a project's file: all of it, or what it denies. `notice` says what does not, and what to do."""

    file: Path
    tree: Mapping[str, Any] = field(default_factory=dict[str, Any])
    denials: Mapping[str, list[str]] = field(default_factory=dict[str, list[str]])
    contents: Mapping[Path, bytes] = field(default_factory=dict[Path, bytes])
    notice: str = ""
    is_trusted: bool = False


def whole_project(file: SettingsFile, path_keys: Collection[str]) -> ProjectSettings:
    """Raises `BrokenFile` for a file, or one that it names, that cannot be read."""
    folder = file.path.parent
    tree = with_absolute_paths(file.tree, folder, path_keys)
    named = set(paths_in(tree, [key for key in path_keys if key not in NOT_READ]))
    contents: dict[Path, bytes] = {}
    for path in sorted(named):
        contents |= folder_contents(path) if path.is_dir() else {path: read_bytes(path)}
    return ProjectSettings(file, tree, contents)


def after_change(before: ProjectSay, now: ProjectSay) -> ProjectSay:
    """What counts while we run: a change that the user has not trusted lifts nothing, and may only deny more."""
    if now.is_trusted:
        return now
    denials = {
        key: list(dict.fromkeys([*before.denials.get(key, ()), *now.denials.get(key, ())]))
        for key in {**before.denials, **now.denials}
    }
    return replace(before, denials=denials, notice=now.notice)


def project_say(folder: Path, store: TrustStore, path_keys: Collection[str]) -> ProjectSay | None:
    """What the settings file of the project in `folder` may say; None if there is none. Raises `BrokenFile`."""
    file = find_project_file(folder)
    if file is None:
        return None
    trusted = store.of(file.path)
    if trusted is not None:
        project = whole_project(file, path_keys)
        if project.sha256 == trusted.sha256:
            return ProjectSay(file.path, project.tree, denials_of(file), project.contents, is_trusted=True)
    notice = _notice(file.path, has_changed=trusted is not None) if says_more(file) else ""
    return ProjectSay(file.path, denials=denials_of(file), notice=notice)


def _notice(path: Path, *, has_changed: bool) -> str:
    why = "it, or a file it names, has changed since you trusted it" if has_changed else "you have not trusted it"
    return (
        f"{path}: only what it denies is in force, because {why}; "
        f"see what is in it, and trust it, with: goat-mcp trust {shlex.quote(str(path))}"
    )
