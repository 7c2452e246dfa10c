"""The files of one skill: those in its folder, but for hidden ones and links. Nothing outside it is opened, ever."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import Workspace

_MAX_NAME_CHARS = 1_000
_MAX_LEVELS = 16


class FileDigest(NamedTuple):
    """SHA-256 of a file's bytes, in hex, and how many there are."""

    sha256: str
    size: int


@dataclass(frozen=True)
class SkillFolder:
    """`trusted` has the bytes of its files as the user trusted them; empty if all that is there counts. Blocking.

    Names are relative, with `/` between their parts.
    """

    path: Path
    trusted: Mapping[Path, bytes]
    _digests: dict[str, tuple[tuple[int, ...], FileDigest]] = field(
        default_factory=dict[str, "tuple[tuple[int, ...], FileDigest]"], compare=False, repr=False
    )
    """By name, with what the file's stat was."""

    def names(self, most: int) -> Sequence[str]:
        """In order, at most `most` of them."""
        found: list[str] = []
        for name in self._walk(str(self.path), "", _MAX_LEVELS):
            if len(found) == most:
                break
            found.append(name)
        return sorted(found)

    def _walk(self, folder: str, above: str, levels: int) -> Iterator[str]:
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            if entry.name.startswith(".") or not _is_utf8(entry.name):
                continue
            if entry.is_file(follow_symlinks=False):
                if not self.trusted or self._real(above + entry.name) in self.trusted:
                    yield above + entry.name
            elif entry.is_dir(follow_symlinks=False) and levels:
                yield from self._walk(entry.path, f"{above}{entry.name}/", levels - 1)

    def _real(self, name: str) -> Path:
        return self.path.resolve() / name

    def read(self, name: str, max_bytes: int) -> bytes:
        """One file, whatever links are swapped meanwhile. Raises `ToolError`: NOT_FOUND, TOO_LARGE, QUARANTINED."""
        return self._open(name, max_bytes)[0]

    def _open(self, name: str, max_bytes: int) -> tuple[bytes, tuple[int, ...]]:
        if any(part.startswith(".") for part in name.split("/")) or "\0" in name or len(name) > _MAX_NAME_CHARS:
            raise self.no_such_file(name)
        jail = Workspace(self.path)
        try:
            with jail.open_file(jail.resolve(str(self.path / name))) as file:
                if self.trusted:
                    return self._trusted(file.real_path), ()
                if file.stat.st_size > max_bytes:
                    raise ToolError(ErrorCode.TOO_LARGE, f"{name} is longer than {max_bytes} bytes", "Use Read for it.")
                return file.read(), _state(file.stat)
        except ToolError as refused:
            if refused.code in (ErrorCode.QUARANTINED, ErrorCode.TOO_LARGE):
                raise
            raise self.no_such_file(name) from None

    def digest(self, name: str, max_bytes: int) -> FileDigest:
        """Of a file as it is now; it is read again only if its stat has changed. Raises as `read`."""
        known = self._digests.get(name)
        if known is not None:
            try:
                if _state(os.stat(self.path / name, follow_symlinks=False)) == known[0]:  # noqa: PTH116  # `Path.stat` is the same
                    return known[1]
            except OSError:
                pass
        data, state = self._open(name, max_bytes)
        found = FileDigest(hashlib.sha256(data).hexdigest(), len(data))
        if state:
            self._digests[name] = (state, found)
        return found

    def _trusted(self, path: Path) -> bytes:
        if (data := self.trusted.get(path)) is None:
            raise ToolError(ErrorCode.QUARANTINED, f"{path} came after the user trusted this skill", "Ask the user.")
        return data

    def no_such_file(self, name: str) -> ToolError:
        known = ", ".join(self.names(200)) or "none"
        return ToolError(ErrorCode.NOT_FOUND, f"{name!r:.200} is no file of this skill", f"Its files: {known}")


def _state(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _is_utf8(name: str) -> bool:
    """Not for bytes of a name that are none: no URI and no JSON could say it."""
    return not any("\ud800" <= char <= "\udfff" for char in name)
