"""A double of a file system that compares names without case and normalised, as macOS has it by default.

It stands behind the jail's `Directory`; what asks the system by other ways (`Path`, programs) sees the real one. Below
`top` a name means the entry that equals it in this way, spelled as it was made, and `disk` is how a new name is stored.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import pytest

from goat_mcp.files.workspace import directory
from goat_mcp.files.workspace.directory import Directory, PosixDirectory, descriptor_path


def as_made(name: str) -> str:
    return name


def decomposed(name: str) -> str:
    """As HFS+ stores names."""
    return unicodedata.normalize("NFD", name)


def fold_names(patch: pytest.MonkeyPatch, top: Path, disk: Callable[[str], str] = as_made) -> None:
    """From now on, every directory at and below `top` is one of such a file system."""

    class FoldingDirectory(PosixDirectory):
        __slots__ = ()

        def stat(self, name: str) -> os.stat_result:
            return super().stat(name if "/" in name else self.own_name(name))

        def read_link(self, name: str) -> str:
            return super().read_link(self.own_name(name))

        def open(self, name: str, flags: int, mode: int = 0o600) -> int:
            return super().open(self.own_name(name), flags, mode)

        def enter(self, name: str, *, to_list: bool = False) -> PosixDirectory:
            return super().enter(self.own_name(name), to_list=to_list)

        def make(self, name: str, mode: int) -> None:
            super().make(self.own_name(name), mode)

        def remove(self, name: str) -> None:
            super().remove(self.own_name(name))

        def remove_folder(self, name: str) -> None:
            super().remove_folder(self.own_name(name))

        def rename(self, name: str, to: Directory, new_name: str) -> None:
            super().rename(self.own_name(name), to, _own_of(to, new_name))

        def link(self, name: str, to: Directory, new_name: str) -> None:
            super().link(self.own_name(name), to, _own_of(to, new_name))

        def own_name(self, name: str) -> str:
            """How the entry that a name means is spelled; how it would be stored, if there is none."""
            here = Path(descriptor_path(self.fileno()) or "")
            if name == "." or not here.is_relative_to(top):
                return name
            alike = [found.name for found in here.iterdir() if _folded(found.name) == _folded(name)]
            return alike[0] if alike else disk(name)

    def _own_of(to: Directory, name: str) -> str:
        return to.own_name(name) if isinstance(to, FoldingDirectory) else name

    patch.setattr(directory, "PosixDirectory", FoldingDirectory)


def _folded(name: str) -> str:
    # On purpose not the jail's own way: the same for case and accents, and no more.
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())
