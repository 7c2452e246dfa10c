"""What each path is in a sandbox that protects single paths: one table for bubblewrap's mounts and Seatbelt's rules."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from goat_mcp.commands.sandbox.confinement import Bounds


class MountKind(IntEnum):
    """What a path is inside. Of two kinds for one path the later in this list holds."""

    EMPTY = 0
    READABLE = 1
    WRITABLE = 2
    PINNED = 3
    READ_ONLY = 4
    ABSENT = 5
    HIDDEN = 6


@dataclass(frozen=True, slots=True)
class Mount:
    path: Path
    kind: MountKind


_VISIBLE = frozenset({MountKind.READABLE, MountKind.WRITABLE, MountKind.PINNED, MountKind.READ_ONLY})


def mounts_of(bounds: Bounds, system: Iterable[Path]) -> tuple[Mount, ...]:
    """The mounts for `bounds` on top of `system`, the readable directories that every sandbox has.

    Directories between a writable path and a protected one are pinned: a command that can move the parent of a
    protected file away can make another one in its place (R-PROC-3, 5).
    """
    kinds: dict[Path, MountKind] = {}

    def add(paths: Iterable[Path], kind: MountKind) -> None:
        for path in paths:
            kinds[path] = max(kinds.get(path, kind), kind)

    add(bounds.readable, MountKind.READABLE)
    add(bounds.writable, MountKind.WRITABLE)
    if bounds.home is not None and bounds.home.parent != bounds.home and not _covered(bounds.home, kinds):
        add((bounds.home,), MountKind.EMPTY)
    in_view = dict(kinds)
    for paths, kind in (
        (bounds.pinned, MountKind.PINNED),
        (bounds.read_only, MountKind.READ_ONLY),
        (bounds.absent, MountKind.ABSENT),
    ):
        # What is read-only as a whole needs no more protection, and must not become writable by it.
        add((path for path in paths if _nearest(path, in_view) is MountKind.WRITABLE), kind)
    seen = {**dict.fromkeys(system, MountKind.READABLE), **kinds}
    add((path for path in bounds.hidden if _nearest(path, seen) in _VISIBLE), MountKind.HIDDEN)
    for path, kind in list(kinds.items()):
        if kind >= MountKind.PINNED and any(kinds.get(above) is MountKind.HIDDEN for above in path.parents):
            del kinds[path]  # it would be seen again
    for path, kind in list(kinds.items()):
        if kind >= MountKind.PINNED:
            between = _between(path, bounds.writable)
            add((above for above in between if _nearest(above, in_view) is MountKind.WRITABLE), MountKind.PINNED)
    return tuple(Mount(path, kind) for path, kind in sorted(kinds.items(), key=lambda one: (len(one[0].parts), one)))


def _covered(path: Path, kinds: Iterable[Path]) -> bool:
    return any(path.is_relative_to(one) for one in kinds)


def _nearest(path: Path, kinds: dict[Path, MountKind]) -> MountKind | None:
    """What the path is inside without a mount of its own."""
    for above in (path, *path.parents):
        if above in kinds:
            return kinds[above]
    return None


def _between(path: Path, writable: Iterable[Path]) -> Iterable[Path]:
    """The directories that lead from the innermost writable one to `path`, both excluded."""
    inside = [one for one in writable if path != one and path.is_relative_to(one)]
    if not inside:
        return ()
    top = max(inside, key=lambda one: len(one.parts))
    return [above for above in path.parents if above != top and above.is_relative_to(top)]
