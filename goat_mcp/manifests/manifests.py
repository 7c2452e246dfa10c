"""The declared tools of a gateway as one source of its registry: read at the start, read again when files change."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from goat_mcp.catalog.registry import Registry
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.substitution import Unresolved
from goat_mcp.manifests.command_runner import CommandRunner
from goat_mcp.manifests.entry import CommandEntry, HandlerFiles, HandlersEntry
from goat_mcp.manifests.folder import ManifestFolders, ManifestSet, holds, merged
from goat_mcp.manifests.handler_api import AgentRuntime, Host
from goat_mcp.manifests.handler_log import HandlerLog
from goat_mcp.manifests.handler_worker import HandlerWorker
from goat_mcp.manifests.http_runner import HttpRunner
from goat_mcp.manifests.manifest_tool import ManifestTool, Resource
from goat_mcp.manifests.runner import InProcess, Runner
from goat_mcp.manifests.tool_document import ToolDocument
from goat_mcp.manifests.validation import ConfigCheck, with_meant_words

SOURCE = "manifests"
POLL_S = 1.0
"""The interval of polling: a change is seen within two seconds (design D15)."""
_Snapshot = Mapping[str, tuple[int, int, int]]


@dataclass
class _Declaration:
    """A resource as last declared, and its runner."""

    document: ToolDocument
    tools: tuple[ManifestTool, ...]
    runner: Runner | None = None


@dataclass(frozen=True, kw_only=True)
class ManifestServices:
    """What declared tools run with."""

    host: Host
    config: Mapping[str, Mapping[str, Any]]
    agents: Callable[[ToolContext], AgentRuntime | None]
    log: HandlerLog


class Manifests:
    """The documents of some directories, and the tools that they declare.

    `shipped` are the documents that come with us. The user's `folders` are read again when files there change, but for
    those that are sealed.
    """

    def __init__(
        self,
        folders: ManifestFolders,
        shipped: ManifestSet,
        *,
        services: ManifestServices,
        registry: Registry,
    ) -> None:
        self._folders = folders
        self._shipped = shipped
        self._services = services
        self._registry = registry
        self._declarations: dict[str, _Declaration] = {}
        self._retired: list[Runner] = []
        """Their calls may still run, but no new ones come."""
        self.declared = ManifestSet()
        # Taken before they are read, so that no change is missed.
        self._first_snapshot = self._snapshot()

    def register(self, users: ManifestSet) -> None:
        """Put their tools, and those that come with us, into the registry."""
        self.declared = merged([users, self._shipped])
        self._declarations = {document.name: self._resource(document) for document in self.declared.tools}
        self._registry.replace_source(
            SOURCE, [tool for declaration in self._declarations.values() for tool in declaration.tools]
        )

    def replace_with_copy(self, folder: Path, copy: Path) -> None:
        """From now on read `copy` instead of this directory; running calls continue."""
        before = self._declarations
        self._folders.replace_with_copy(folder, copy)
        self.register(self._folders.read())
        self._retired += [
            declaration.runner
            for name, declaration in before.items()
            if declaration.runner is not None and self._declarations.get(name) is not declaration
        ]

    @property
    def folders(self) -> Sequence[Path]:
        """The user's directories."""
        return self._folders.folders

    @property
    def watched(self) -> Sequence[Path]:
        """The directories that are read again when they change."""
        return self._folders.watched

    def _resource(self, document: ToolDocument) -> _Declaration:
        before = self._declarations.get(document.name)
        if before is not None and before.document == document:
            return before
        declaration = _Declaration(document, ())
        folder = document.document.folder

        def runner() -> Runner:
            if declaration.runner is None:
                declaration.runner = self._runner(document)
            return declaration.runner

        def declared_now(export: str) -> ManifestTool | None:
            now = self._declarations.get(document.name)
            return next((tool for tool in now.tools if tool.export.name == export), None) if now is not None else None

        check = ConfigCheck(document.name, document.config)
        resource = Resource(
            name=document.name,
            file=document.document.file,
            entry=document.document.tree["spec"]["entry"],
            files=HandlerFiles(document.entry, folder, lambda: self._folders.sealed_as(folder)),
            declared_now=declared_now,
            runner=runner,
            workspace=self._services.host.workspace,
            agents=self._services.agents,
            logger=lambda call_id: self._services.log.of(document.name, call_id),
            config=lambda: self._config(document, check),
        )
        declaration.tools = tuple(ManifestTool(export, resource) for export in document.exports)
        return declaration

    def _runner(self, document: ToolDocument) -> Runner:
        host, entry = self._services.host, document.entry
        folder = document.document.folder
        limit = document.error_message_limit
        if isinstance(entry, HandlersEntry):
            if document in self._shipped.tools and entry.file is not None:
                return InProcess(document.name, entry.file, host)
            return HandlerWorker(
                document.name,
                entry,
                folder=folder,
                guard=host.guard,
                environment=host.environment.build,
                config=lambda: self._config(document),
                compiled=host.state.folder("compiled_handlers"),
                message_limit=limit,
                copy=self._folders.copy_around(folder),
            )
        if isinstance(entry, CommandEntry):
            return CommandRunner(
                entry,
                folder=folder,
                guard=host.guard,
                environment=host.environment.build,
                env=self._resolved,
                message_limit=limit,
            )
        return HttpRunner(entry, host.http, headers=self._resolved, message_limit=limit)

    def _config(self, document: ToolDocument, check: ConfigCheck | None = None) -> Mapping[str, Any]:
        values = self._resolved(with_meant_words(self._services.config.get(document.name, {}), document.config))
        if check is not None:
            check.check(values)
        return values

    def _resolved(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """With references to variables and secrets replaced. Raises `ToolError(CONFIG)`."""
        try:
            return self._services.host.references.resolve(dict(values))
        except Unresolved as unresolved:
            raise ToolError(ErrorCode.CONFIG, str(unresolved), "Tell the user: it is a matter of settings.") from None

    async def watch(self, changed: Callable[[], None]) -> None:
        """Poll the user's files until cancelled; `changed` is called after each reload."""
        seen = self._first_snapshot
        while True:
            await anyio.sleep(POLL_S)
            look = await anyio.to_thread.run_sync(self._snapshot, abandon_on_cancel=True)
            if look == seen:
                continue
            touched = {Path(path).parent for path, _ in seen.items() ^ look.items()}
            seen = look
            await self._reload(touched)
            changed()

    async def _reload(self, touched: Collection[Path]) -> None:
        """Read again what changed. Running calls continue; new ones use the new files, also if only a file beside the
        manifest changed."""
        before = self._declarations
        self.register(await anyio.to_thread.run_sync(self._folders.read))
        for name, declaration in before.items():
            is_other = (
                self._declarations.get(name) is not declaration or declaration.document.document.file.parent in touched
            )
            if declaration.runner is not None and is_other:
                await declaration.runner.retire()

    def _snapshot(self) -> _Snapshot:
        """The state of all files, to be compared with the next one."""
        found: dict[str, tuple[int, int, int]] = {}
        for folder in self._folders.watched:
            for file in _files_below(folder):
                with suppress(OSError):  # it has just gone
                    state = file.stat()
                    found[file.path] = (state.st_ino, state.st_size, state.st_mtime_ns)
        return found

    async def close(self) -> None:
        """End what runs."""
        runners = [declaration.runner for declaration in self._declarations.values() if declaration.runner is not None]
        for runner in (*runners, *self._retired):
            await runner.close()
        self._services.log.close()


def _files_below(folder: Path) -> Iterable[os.DirEntry[str]]:
    """The files of a directory of manifests and of the directories in it."""
    for entry in _entries(folder):
        if entry.name.startswith("."):
            continue
        if holds(entry.is_dir):
            yield from (inner for inner in _entries(entry.path) if holds(inner.is_file))
        elif holds(entry.is_file):
            yield entry


def _entries(folder: Path | str) -> Iterable[os.DirEntry[str]]:
    try:
        yield from os.scandir(folder)
    except OSError:
        return  # gone, or not readable now: loading says so
