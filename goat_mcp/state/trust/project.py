"""A project's settings file and all it names: one content, one hash, trusted whole or not at all (R-CONF-1)."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from goat_mcp.state.trust.denials import denials_of, says_more
from goat_mcp.state.trust.folder_contents import folder_contents
from goat_mcp.state.trust.named_paths import paths_in, with_absolute_paths
from goat_mcp.state.trust.settings_file import SettingsFile, find_project_file, read_bytes
from goat_mcp.state.trust.store import TrustStore

NOT_READ = frozenset({"workspace", "audit.path", "sandbox_read", "sandbox_write"})
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
        """Of the file alone where it names no other, as `sha256sum` prints it; else of the hashes of all."""
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


def whole_project(file: SettingsFile, path_keys: Collection[str]) -> ProjectSettings:
    """Raises `BrokenFile` for a file, or one that it names, that cannot be read."""
    folder = file.path.parent
    tree = with_absolute_paths(file.tree, folder, path_keys)
    named = set(paths_in(tree, [key for key in path_keys if key not in NOT_READ]))
    contents: dict[Path, bytes] = {}
    for path in sorted(named):
        contents |= folder_contents(path) if path.is_dir() else {path: read_bytes(path)}
    return ProjectSettings(file, tree, contents)


def project_say(folder: Path, store: TrustStore, path_keys: Collection[str]) -> ProjectSay | None:
    """What the settings file of the project in `folder` may say; None where there is none. Raises `BrokenFile`."""
    file = find_project_file(folder)
    if file is None:
        return None
    trusted = store.of(file.path)
    if trusted is not None:
        project = whole_project(file, path_keys)
        if project.sha256 == trusted.sha256:
            return ProjectSay(file.path, project.tree, denials_of(file), project.contents)
    notice = _notice(file.path, has_changed=trusted is not None) if says_more(file) else ""
    return ProjectSay(file.path, denials=denials_of(file), notice=notice)


def _notice(path: Path, *, has_changed: bool) -> str:
    why = "it, or a file it names, has changed since you trusted it" if has_changed else "you have not trusted it"
    return (
        f"{path}: only what it denies is in force, because {why}; "
        f"see what is in it, and trust it, with: goat-mcp trust {shlex.quote(str(path))}"
    )
