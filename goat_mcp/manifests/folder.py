"""The manifests of a directory: `DIR/*.yaml` and `DIR/*/*.yaml`, in the order of their paths."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from goat_mcp.manifests.agent_document import AgentDocument
from goat_mcp.manifests.kinds import (
    Declared,
    ProfileDocument,
    ToolDocument,
    ToolsetDocument,
    UpstreamDocument,
    is_manifest,
    read_declared,
)
from goat_mcp.manifests.yaml_document import MAX_BYTES, BrokenManifest, ManifestProblem, YamlDocument, read_documents
from goat_mcp.state.file_safety import why_folder_unsafe, why_writable

_SUFFIXES = (".yaml", ".yml")
_TOOL_FILES = ("tool.yaml", "tool.yml")
"""Files of these names mean to be manifests, whatever is in them."""
_BEGIN = "begin it with apiVersion: goat-mcp/v1 and kind: Tool, or remove it"
_DeclaredT = TypeVar("_DeclaredT", ToolDocument, UpstreamDocument, ToolsetDocument, ProfileDocument, AgentDocument)


@dataclass(frozen=True)
class ManifestSet:
    """Everything that some directories declare, each name once, and what is wrong there."""

    tools: tuple[ToolDocument, ...] = ()
    upstreams: tuple[UpstreamDocument, ...] = ()
    toolsets: tuple[ToolsetDocument, ...] = ()
    profiles: tuple[ProfileDocument, ...] = ()
    agents: tuple[AgentDocument, ...] = ()
    problems: tuple[ManifestProblem, ...] = ()


def manifest_files(folder: Path) -> Sequence[Path]:
    """The files that may hold manifests; of those that must be one, also what is no file. Raises `OSError`."""
    found: list[Path] = []
    for entry in _entries(folder):
        if entry.name.startswith("."):
            continue
        if holds(entry.is_dir):
            with suppress(OSError):  # one that cannot be looked into leaves the others alone
                found += [Path(one.path) for one in _entries(entry.path) if _may_be_manifest(one)]
        elif _may_be_manifest(entry):
            found.append(Path(entry.path))
    return found


def _entries(folder: Path | str) -> list[os.DirEntry[str]]:
    return sorted(os.scandir(folder), key=lambda one: one.name)


def _may_be_manifest(entry: os.DirEntry[str]) -> bool:
    return entry.name in _TOOL_FILES or (entry.name.endswith(_SUFFIXES) and holds(entry.is_file))


def holds(question: Callable[[], bool]) -> bool:
    """`entry.is_dir` or `entry.is_file`; False for a link that leads to itself."""
    try:
        return question()
    except OSError:
        return False


@dataclass(frozen=True)
class _Read:
    """What one file declares, and the state of the file."""

    state: tuple[int, int, int]
    declared: tuple[Declared, ...]
    problems: tuple[ManifestProblem, ...]
    is_whole: bool = True


class ManifestFolders:
    """Some directories of manifests. A file that has not changed since it was read is not read again."""

    def __init__(self, folders: Iterable[Path], *, ships_with_us: bool = False) -> None:
        self.folders = tuple(folders)
        self._ships_with_us = ships_with_us
        self._known: dict[Path, _Read] = {}
        self._copies: dict[Path, Path] = {}

    def replace_with_copy(self, folder: Path, copy: Path) -> None:
        """From now on read, and run, `copy` instead of this folder. Problems still name the original."""
        self._copies[folder] = copy
        self._known = {file: read for file, read in self._known.items() if not file.is_relative_to(folder)}

    def sealed_as(self, place: Path) -> str:
        """The name of the copy that holds it, a hash of the copy's content; empty if no copy does."""
        copy = self.copy_around(place)
        return copy.name if copy is not None else ""

    def copy_around(self, place: Path) -> Path | None:
        """The copy that holds it, if one does."""
        return next((copy for copy in self._copies.values() if place.is_relative_to(copy)), None)

    @property
    def watched(self) -> tuple[Path, ...]:
        """The folders that can still change."""
        return tuple(folder for folder in self.folders if folder not in self._copies)

    def read(self) -> ManifestSet:
        """What they declare. If a name is declared twice, the second one is a problem."""
        problems: list[ManifestProblem] = []
        known: dict[Path, _Read] = {}
        for folder in self.folders:
            copy = self._copies.get(folder)
            for file in self._files(copy or folder, problems, is_ours=copy is not None):
                original = folder / file.relative_to(copy) if copy is not None else file
                known[original] = self._read(file, original, is_ours=copy is not None)
        self._known = known
        declared = [one for read in known.values() for one in read.declared]
        problems += [problem for read in known.values() for problem in read.problems]
        return ManifestSet(
            _unique(ToolDocument, declared, problems),
            _unique(UpstreamDocument, declared, problems),
            _unique(ToolsetDocument, declared, problems),
            _unique(ProfileDocument, declared, problems),
            _unique(AgentDocument, declared, problems),
            tuple(problems),
        )

    def _files(self, folder: Path, problems: list[ManifestProblem], *, is_ours: bool) -> Sequence[Path]:
        is_ours = is_ours or self._ships_with_us
        try:
            if not is_ours and (reason := why_folder_unsafe(folder, shared_is_safe=True)):
                problems.append(
                    _file_problem(folder, f"nothing of it is used: the directory {reason}", "fix its rights")
                )
                return ()
            return manifest_files(folder)
        except OSError as problem:
            problems.append(
                _file_problem(folder, f"cannot be read: {problem.strerror}", "name a directory of manifests")
            )
            return ()

    def _read(self, file: Path, original: Path, *, is_ours: bool) -> _Read:
        is_ours = is_ours or self._ships_with_us
        declared: list[Declared] = []
        problems: list[ManifestProblem] = []
        state = (0, 0, 0)
        try:
            if not file.is_file():  # opening a pipe would wait for whoever writes into it
                raise BrokenManifest(_file_problem(original, "is no file", "put the manifest there, or take it away"))
            with file.open("rb") as opened:
                found = os.fstat(opened.fileno())
                state = (found.st_ino, found.st_size, found.st_mtime_ns)
                if (before := self._known.get(original)) is not None and before.state == state and before.is_whole:
                    return before
                if not is_ours and (reason := why_writable(found) or why_writable(file.parent.stat())):
                    raise BrokenManifest(
                        _file_problem(file, f"not used: it, or its directory, {reason}", "chmod go-w both")
                    )
                data = opened.read(MAX_BYTES + 1)
            documents = read_documents(original, data, file.parent)
            _read_documents(_manifests_in(original, documents), declared, problems, ships_with_us=self._ships_with_us)
        except OSError as problem:
            problems.append(_file_problem(original, f"cannot be read: {problem.strerror}", "fix its rights"))
        except BrokenManifest as broken:
            problems += broken.problems
        # What is missing beside a manifest may come without a change of the manifest.
        is_whole = not any(problem.is_fatal for problem in problems)
        return _Read(state, tuple(declared), tuple(problems), is_whole)


def _manifests_in(file: Path, documents: Sequence[YamlDocument]) -> Sequence[YamlDocument]:
    """The documents that are manifests. Raises `BrokenManifest` if a file that must be one holds something else."""
    if file.name not in _TOOL_FILES:
        return [document for document in documents if is_manifest(document)]
    present = [document for document in documents if document.tree is not None]
    if not present:
        raise BrokenManifest(ManifestProblem(file, 1, "the file is empty", _BEGIN))
    others = [document for document in present if not isinstance(document.tree, dict)]
    if others:
        raise BrokenManifest(*(one.problem((), f"here is {one.describe((), one.tree)}", _BEGIN) for one in others))
    return present


def _file_problem(place: Path, what: str, remedy: str) -> ManifestProblem:
    return ManifestProblem(place, 0, what, remedy)


def _read_documents(
    documents: Iterable[YamlDocument],
    declared: list[Declared],
    problems: list[ManifestProblem],
    *,
    ships_with_us: bool,
) -> None:
    """A broken document does not affect the others of its file."""
    for document in documents:
        try:
            found, odd = read_declared(document, ships_with_us=ships_with_us)
        except BrokenManifest as broken:
            problems += broken.problems
            continue
        problems += odd
        if found is not None:
            declared.append(found)


def _unique(
    kind: type[_DeclaredT], declared: Iterable[Declared], problems: list[ManifestProblem]
) -> tuple[_DeclaredT, ...]:
    kept: dict[str, _DeclaredT] = {}
    for one in declared:
        if not isinstance(one, kind):
            continue
        if (first := kept.get(one.name)) is None:
            kept[one.name] = one
        else:
            where = f"{first.document.file}:{first.document.line_of(())}"
            what = f"{one.document.tree['kind']} {one.name} is declared at {where} already"
            problems.append(one.document.problem(("metadata", "name"), what, "rename one of them"))
    return tuple(kept.values())


def merged(sets: Iterable[ManifestSet]) -> ManifestSet:
    """Several sets as one. The shipped set comes last: a user's tool of the same name replaces its tool, with a notice
    (design D3)."""
    whole = ManifestSet()
    for one in sets:
        names = {tool.name: tool for tool in whole.tools}
        replaced = (_replaces(names[tool.name], tool) for tool in one.tools if tool.name in names)
        whole = replace(
            whole,
            tools=(*whole.tools, *(tool for tool in one.tools if tool.name not in names)),
            upstreams=(*whole.upstreams, *one.upstreams),
            toolsets=(*whole.toolsets, *one.toolsets),
            profiles=(*whole.profiles, *one.profiles),
            agents=(*whole.agents, *one.agents),
            problems=(*whole.problems, *one.problems, *replaced),
        )
    return whole


def _replaces(kept: ToolDocument, other: ToolDocument) -> ManifestProblem:
    what = f"this {kept.name} replaces the one that {other.document.file} declares"
    return kept.document.problem(("metadata", "name"), what, "rename it to have both", level="warning")
