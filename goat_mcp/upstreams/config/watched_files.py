"""The files that upstreams are read from, at the start and whenever one of them has changed since (CFG-4).

What a project's files said when the user trusted them stays: a change of theirs counts only after it is trusted too.
So does what a file said that the tools served here may write: whoever calls them could start any program by it. What
becomes of what was read is others' business.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import anyio
import anyio.to_thread

from goat_mcp.state.directory import own_upstreams_file
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.upstream_files import (
    BrokenUpstreamsFile,
    DeclaredEntry,
    UpstreamFiles,
    load_upstream_files,
)

LOOK_S = 1.0
_Look = tuple[tuple[int, int, int, int] | None, ...]


class WatchedFiles:
    """`named` are read in their order; `contents` are those that count as they were trusted, whatever is on disk.

    `default` is a file that counts once it is there, where none was named. `is_open` says of a path whether tools may
    change what lies there unasked. `declared` are the entries of manifests, which have watchers of their own.
    """

    def __init__(
        self,
        named: Sequence[Path],
        *,
        contents: Mapping[Path, bytes],
        references: SecretReferences,
        default: Path | None = None,
        is_open: Callable[[Path], bool] = lambda path: False,
        declared: Callable[[], Sequence[DeclaredEntry]] = tuple,
    ) -> None:
        self._named = tuple(named)
        self._contents = contents
        self._references = references
        self._default = default
        self._is_open = is_open
        self._declared = declared
        self._is_stale = False
        self._read: dict[Path, bytes] = {}
        self._seen = self._look()

    def load(self) -> UpstreamFiles:
        """Read all of them. Raises `BrokenUpstreamsFile`."""
        return self._loaded({file: _content(file) for file in self._on_disk()})

    def _loaded(self, read: dict[Path, bytes]) -> UpstreamFiles:
        files = load_upstream_files(
            self._named,
            contents={**read, **self._contents},
            references=self._references,
            declared=self._declared(),
        )
        self._read = read
        return files

    def look_again(self) -> None:
        """What manifests declare has changed."""
        self._is_stale = True

    async def watch(
        self, changed: Callable[[UpstreamFiles], None], broken: Callable[[BrokenUpstreamsFile], None]
    ) -> None:
        """Look at them again and again, until cancelled; tell of what they say now, or of the one that is broken."""
        while True:
            await anyio.sleep(LOOK_S)
            # Off the event loop: a file may lie on a disk that takes its time, a reference in a keyring that asks.
            look = await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True)
            if look == self._seen and not self._is_stale:
                continue
            self._seen, self._is_stale = look, False
            try:
                files = await anyio.to_thread.run_sync(self._load_again, abandon_on_cancel=True)
            except BrokenUpstreamsFile as problem:
                broken(problem)
            else:
                changed(files)

    def _load_again(self) -> UpstreamFiles:
        if self._default is not None and os.path.lexists(self._default):
            # From now on it is missed if it goes.
            self._named, self._default = (*self._named, self._default), None
        return self._loaded({file: self._content_now(file) for file in self._on_disk()})

    def _content_now(self, file: Path) -> bytes:
        if file in self._read and self._stays(file):
            return self._read[file]
        return _own_content(file) if file == own_upstreams_file() else _content(file)

    def _stays(self, file: Path) -> bool:
        return self._is_open(file) or self._is_open(file.resolve())

    def _on_disk(self) -> Sequence[Path]:
        return [file for file in self._named if file not in self._contents]

    def _look(self) -> _Look:
        files = [*self._on_disk(), *([self._default] if self._default is not None else ())]
        return tuple(None if self._stays(file) else _state(file) for file in files)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as problem:
        raise BrokenUpstreamsFile(
            file, problem.strerror or str(problem), "Give the path of a readable JSON file."
        ) from None


def _own_content(file: Path) -> bytes:
    """Raises `BrokenUpstreamsFile` also for one that somebody else could have written, as at the start."""
    from goat_mcp.state.trust.settings_file import BrokenFile, read_users_file

    try:
        return read_users_file(file).data
    except BrokenFile as broken:
        what = str(broken).removeprefix(f"{file}").lstrip(": ")
        raise BrokenUpstreamsFile(file, what, f"Mend {file}.") from None


def _state(file: Path) -> tuple[int, int, int, int] | None:
    """What tells one content from the next; None where there is no file."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
