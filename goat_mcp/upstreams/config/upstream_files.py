"""The files that configure upstreams: Claude-Desktop-style `mcpServers` objects, in order; and their watcher.

A broken file is an error; a broken entry becomes a problem of that entry and the others work (design D15). What an
entry may say is in `entry_parser`. A changed file is read again while the server runs (CFG-4), with two exceptions that
stay as they were at the start: files of a project, until the user trusts the change, and files that the tools served
here may write, since whoever calls those could start any program.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, cast

import anyio
import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.directory import own_upstreams_file
from goat_mcp.state.file_state import FileState, file_state
from goat_mcp.state.secret_references import SecretReferences
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.status import ReasonCode


@dataclass(frozen=True)
class UpstreamProblem:
    """An entry that is not used, or used with a reservation. `message` says what to write instead."""

    name: str
    reason_code: ReasonCode
    message: str
    file: str = ""
    is_about_file: bool = False
    """Whether the whole file is broken, so that what it said before stays in use."""

    @property
    def is_fatal(self) -> bool:
        """Whether the entry is left out."""
        return self.reason_code is not ReasonCode.UNKNOWN_KEY


class DeclaredEntry(NamedTuple):
    """One upstream as it is written somewhere: in a file of them, or in a manifest."""

    name: str
    entry: Any
    file: Path


@dataclass(frozen=True)
class UpstreamFiles:
    """All entries of all files, in order, and what is wrong with some of them."""

    configs: tuple[UpstreamConfig, ...] = ()
    problems: tuple[UpstreamProblem, ...] = ()


class BrokenUpstreamsFile(ToolError):
    """A file that says nothing anybody could use; the message names it."""

    def __init__(self, file: Path, what: str, suggestion: str) -> None:
        super().__init__(ErrorCode.CONFIG, f"upstreams file {file}: {what}", suggestion)
        self.file = file
        self.what = what


def load_upstream_files(
    files: Iterable[Path],
    *,
    contents: Mapping[Path, bytes] | None = None,
    references: SecretReferences | None = None,
    declared: Iterable[DeclaredEntry] = (),
) -> UpstreamFiles:
    """Read files in order. Raises `BrokenUpstreamsFile` for a file that is missing, not JSON or without `mcpServers`.

    `contents` are files as the user trusted them: what has become of one on disk since does not count. `declared` are
    entries of manifests; they come last.
    """
    references = references or SecretReferences()
    configs: list[UpstreamConfig] = []
    problems: list[UpstreamProblem] = []
    in_files = (entry for file in files for entry in entries_of(file, (contents or {}).get(file)))
    for name, entry, file in (*in_files, *declared):
        config = _read_entry(name, entry, file, references, problems)
        if config is None:
            continue
        twin = next((other for other in configs if other.server == config.server), None)
        if twin is None:
            configs.append(config)
        else:
            message = (
                f"{name!r} has the same name as {twin.name!r} in tool names ({config.server!r}); rename one of them"
            )
            problems.append(UpstreamProblem(name, ReasonCode.CONFIG_ERROR, message, str(file)))
    return UpstreamFiles(tuple(configs), tuple(problems))


def _read_entry(
    name: str, entry: Any, file: Path, references: SecretReferences, problems: list[UpstreamProblem]
) -> UpstreamConfig | None:
    from goat_mcp.upstreams.config.entry_parser import BrokenEntry, upstream_of  # loaded with the first entry

    def note(code: ReasonCode, message: str) -> None:
        problems.append(UpstreamProblem(name, code, message, str(file)))

    try:
        return upstream_of(name, entry, file, references, note)
    except BrokenEntry as broken:
        note(ReasonCode.CONFIG_ERROR, str(broken))
        return None


def entries_of(file: Path, content: bytes | None = None) -> Sequence[DeclaredEntry]:
    """The entries of `mcpServers` in order; a name written twice comes twice. Raises `BrokenUpstreamsFile`."""
    try:
        text = (file.read_bytes() if content is None else content).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as problem:
        raise BrokenUpstreamsFile(file, _reason(problem), "Give the path of a readable JSON file.") from None
    try:
        document = json.loads(text, object_pairs_hook=_Pairs)
    except (ValueError, RecursionError) as broken:
        where = (
            f"line {broken.lineno}, column {broken.colno}: {broken.msg}"
            if isinstance(broken, json.JSONDecodeError)
            else "is nested too deeply, or holds a number of too many digits"
        )
        raise BrokenUpstreamsFile(
            file, where, 'Write JSON of the form {"mcpServers": {"name": {"command": "...", "args": ["..."]}}}.'
        ) from None
    servers = document.last("mcpServers") if isinstance(document, _Pairs) else None
    if not isinstance(servers, _Pairs):
        found = "has no mcpServers object" if servers is None else "mcpServers is not an object"
        raise BrokenUpstreamsFile(
            file,
            found,
            'Write {"mcpServers": {"name": {"command": "...", "args": ["..."]}}}.',
        )
    return [DeclaredEntry(name, _plain(value), file) for name, value in servers.pairs]


class _Pairs:
    """A JSON object as it was written, repeated keys and all."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        self.pairs = pairs

    def last(self, key: str) -> Any:
        return dict(self.pairs).get(key)


def _plain(value: Any) -> Any:
    if isinstance(value, _Pairs):
        return {key: _plain(child) for key, child in value.pairs}
    if isinstance(value, list):
        return [_plain(item) for item in cast("list[Any]", value)]
    return value


def _reason(problem: OSError | UnicodeDecodeError) -> str:
    return "is not UTF-8 text" if isinstance(problem, UnicodeDecodeError) else (problem.strerror or str(problem))


LOOK_S = 1.0
_Look = tuple[FileState | None, ...]


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
        if file.exists() and not file.is_file():
            # A pipe that nobody writes to would hold up the watcher for good.
            raise BrokenUpstreamsFile(file, "is not a regular file", "Give the path of a readable JSON file.")
        return _own_content(file) if file == own_upstreams_file() else _content(file)

    def _stays(self, file: Path) -> bool:
        return self._is_open(file) or self._is_open(file.resolve())

    def _on_disk(self) -> Sequence[Path]:
        return [file for file in self._named if file not in self._contents]

    def _look(self) -> _Look:
        files = [*self._on_disk(), *([self._default] if self._default is not None else ())]
        # A secret that was stored again counts for the entries that name it.
        stored = file_state(self._references.stored)
        return (stored, *(None if self._stays(file) else file_state(file) for file in files))


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
        raise BrokenUpstreamsFile(file, what, f"Fix {file}.") from None
