"""The `Bounds` of one command or upstream, from the settings, the workspace and the caller's rights."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from goat_mcp.commands.sandbox.confinement import Bounds, ProxyAccess
from goat_mcp.commands.sandbox.git_directories import ProtectedPaths
from goat_mcp.commands.sandbox.options import Network, SandboxOptions
from goat_mcp.commands.sandbox.protected_paths import ExistingPaths, ProtectedSearch

_SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".pypirc"),
    *(".config/gcloud", ".config/gh", ".config/goat-mcp", ".password-store", ".local/share/keyrings"),
    *(".mozilla", ".config/google-chrome", ".config/chromium"),
    *(f"Library/{name}" for name in ("Keychains", "Cookies", "Safari", "Mail", "Messages")),
    *(f"Library/Application Support/{name}" for name in ("Google/Chrome", "Chromium", "Firefox", "com.apple.TCC")),
)
"""Hidden if the home directory itself is visible, as part of the workspace or by the settings."""
_POINTER = "gitdir: "
_IN_MAIN_CHECKOUT = ("HEAD", "index")


@dataclass(frozen=True)
class PolicyPaths:
    """The server's directories. `private` is never visible; `shown` lies in it and commands may read it.

    `records` are files that commands neither see nor change, and in whose folders they make nothing.
    """

    roots: Callable[[], Sequence[Path]]
    private: tuple[Path, ...] = ()
    shown: Callable[[], Sequence[Path]] = tuple
    records: Callable[[], Sequence[Path]] = tuple
    home: Path | None = None


class SandboxPolicy:
    """Makes `Bounds`. Blocking: it searches writable directories for protected names."""

    def __init__(
        self, paths: PolicyPaths, is_protected: Callable[[str], bool], before: ExistingPaths | None = None
    ) -> None:
        self._paths = paths
        self._search = ProtectedSearch(is_protected, before)

    def of(self, options: SandboxOptions, proxy: ProxyAccess | None, *, writes_below: str = "") -> Bounds:
        """Bounds for the workspace. `writes_below`: the only directory that may be changed; the roots stay readable.

        A git worktree needs its repository: that repository's git directory can be changed then, except for its hooks,
        configuration, and the state of its own checkout.
        """
        roots = [_real(root) for root in self._paths.roots()]
        found = ProtectedPaths()
        if not writes_below:
            writable = roots
            readable: list[Path] = []
        else:
            below = _real(Path(writes_below))
            writable, readable = [below], [root for root in roots if not root.is_relative_to(below)]
            if (repository := _repository_of(below)) is not None:
                writable.append(repository)
                found.add(self._search.in_git(repository))
                found.read_only += [path for name in _IN_MAIN_CHECKOUT if (path := repository / name).is_file()]
        shown = self._paths.shown()
        return self._bounds(options, proxy, writable, readable, found, shown=shown, writes_more=not writes_below)

    def of_upstream(self, options: SandboxOptions, proxy: ProxyAccess | None, directory: Path) -> Bounds:
        """Bounds for a server outside the workspace: what its entry names, and the directory it starts in.

        That directory may be read, unless it is the home directory or contains it. It can be written only if the entry
        says so.
        """
        home = self._paths.home
        start = _real(directory)
        is_too_much = start.parent == start or (home is not None and _real(home).is_relative_to(start))
        return self._bounds(options, proxy, [], [] if is_too_much else [start], ProtectedPaths())

    def _bounds(
        self,
        options: SandboxOptions,
        proxy: ProxyAccess | None,
        writable: Sequence[Path],
        readable: Sequence[Path],
        found: ProtectedPaths,
        *,
        shown: Sequence[Path] = (),
        writes_more: bool = True,
    ) -> Bounds:
        asked = [*options.sandbox_read, *options.sandbox_write]
        more_writable = options.sandbox_write if writes_more else ()
        more_readable = options.sandbox_read if writes_more else asked
        private = [_real(path) for path in self._paths.private]
        writable = self._allowed([*writable, *map(_real, more_writable)], private)
        readable = [
            *self._allowed([*readable, *map(_real, more_readable)], private),
            *(path for one in shown if _is_there(path := _real(one))),
        ]
        records = [_real(path) for path in self._paths.records()]
        # A file made beside a record could be taken for a part of it.
        closed = {path.parent for path in records}
        readable = [*readable, *(path for path in writable if path in closed)]
        writable = [path for path in writable if path not in closed]
        searched = frozenset(found.pinned)
        for directory in writable:
            if _is_there(directory) and directory.is_dir() and directory not in searched:
                found.add(self._search.below(directory))
        home = None if self._paths.home is None else _real(self._paths.home)
        found = _with_closed(found, closed, writable)
        return Bounds(
            writable=tuple(dict.fromkeys(writable)),
            readable=tuple(dict.fromkeys(readable)),
            pinned=tuple(found.pinned),
            read_only=tuple(found.read_only),
            absent=tuple(found.absent),
            watched=tuple(found.watched),
            missed=tuple(dict.fromkeys(found.missed)),
            hidden=(*private, *records, *_secrets(home, (*writable, *readable))),
            links=tuple((path, _real(path)) for path in asked if _is_there(path) and path != _real(path)),
            home=home,
            network=options.sandbox_network,
            proxy=proxy if options.sandbox_network is Network.DOMAINS else None,
        )

    def _allowed(self, paths: Iterable[Path], private: Sequence[Path]) -> list[Path]:
        """Existing paths outside the server's own. A path that contains one of those stays; they are hidden in it."""
        return [path for path in paths if _is_there(path) and not any(path.is_relative_to(one) for one in private)]


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_there(path: Path) -> bool:
    """False for what the user may not look at: their commands may not either."""
    return os.path.exists(path)  # noqa: PTH110  # `Path.exists` raises for it


def with_unchanged(bounds: Bounds, paths: Sequence[Path]) -> Bounds:
    """The same with `paths` read-only, as a whole: what is protected below one of them opens nothing in it."""
    if not paths:
        return bounds
    found = ProtectedPaths([*bounds.pinned], [*bounds.read_only], [*bounds.absent], [*bounds.watched])
    found = _with_closed(found, set(paths), bounds.writable)
    return replace(
        bounds,
        pinned=tuple(found.pinned),
        read_only=tuple(found.read_only),
        absent=tuple(found.absent),
        watched=tuple(found.watched),
    )


def _with_closed(found: ProtectedPaths, closed: set[Path], writable: Sequence[Path]) -> ProtectedPaths:
    """The same with the folders `closed` read-only, except for what is writable in them by itself."""

    def stays(path: Path) -> bool:
        above = next((one for one in path.parents if one in closed or one in writable), None)
        return above not in closed

    return ProtectedPaths(
        pinned=[*filter(stays, found.pinned)],
        read_only=[*filter(stays, found.read_only), *closed],
        absent=[*filter(stays, found.absent)],
        watched=[one for one in found.watched if stays(one.path)],
        missed=found.missed,
    )


def _secrets(home: Path | None, visible: Sequence[Path]) -> list[Path]:
    """Keys and passwords that are visible with a directory that holds them, and that nobody has named themselves."""
    if home is None:
        return []
    there = dict.fromkeys(_real(path) for name in _SECRETS if _is_there(path := home / name))
    return [path for path in there if path not in visible and any(one in path.parents for one in visible)]


def _repository_of(worktree: Path) -> Path | None:
    """The git directory that a worktree shares with others: `.git` at or above it is a file that names it."""
    for folder in (worktree, *worktree.parents):
        pointer = folder / ".git"
        if not os.path.isfile(pointer):  # noqa: PTH113  # as above
            continue
        try:
            text = pointer.read_text("utf-8", "surrogateescape")
            own = folder / text.removeprefix(_POINTER).rstrip("\n")
            common = (own / "commondir").read_text("utf-8", "surrogateescape").rstrip("\n")
            repository = _real(own / common)
            points_back = (own / "gitdir").read_text("utf-8", "surrogateescape").rstrip("\n")
        except OSError:
            return None
        # All three files are what a command may have written; the folder must know of the worktree itself.
        knows = own.parent.name == "worktrees" and _real(own.parent.parent) == repository
        return repository if knows and _real(Path(points_back)) == _real(pointer) else None
    return None
