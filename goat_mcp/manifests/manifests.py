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
from goat_mcp.core.agent_runtime import AgentRuntime
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.substitution import Unresolved
from goat_mcp.manifests.command_runner import CommandRunner
from goat_mcp.manifests.entry import CommandEntry, PythonEntry
from goat_mcp.manifests.folder import ManifestFolders, ManifestSet, is_a, together
from goat_mcp.manifests.handler_api import Host
from goat_mcp.manifests.handler_files import HandlerFiles
from goat_mcp.manifests.handler_log import HandlerLog
from goat_mcp.manifests.http_runner import HttpRunner
from goat_mcp.manifests.manifest_tool import ManifestTool, Resource
from goat_mcp.manifests.python_worker import PythonWorker
from goat_mcp.manifests.runner import InProcess, Runner
from goat_mcp.manifests.tool_document import ToolDocument
from goat_mcp.manifests.validation import ConfigCheck

SOURCE = "manifests"
LOOK_S = 1.0
"""How often files are looked at: a change is seen within two seconds (design D15)."""
_Look = Mapping[str, tuple[int, int, int]]


@dataclass
class _Known:
    """A resource as it was last declared, and what runs it."""

    document: ToolDocument
    tools: tuple[ManifestTool, ...]
    runner: Runner | None = None


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What declared tools are run over, and told of."""

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
        surroundings: Surroundings,
        registry: Registry,
    ) -> None:
        self._folders = folders
        self._shipped = shipped
        self._around = surroundings
        self._registry = registry
        self._known: dict[str, _Known] = {}
        self._left: list[Runner] = []
        """Those whose calls may still run, though no new ones come."""
        self.declared = ManifestSet()
        # Before they are read: what changes from now on is seen.
        self._seen = self._look()

    def use(self, users: ManifestSet) -> None:
        """Put their tools, and those that come with us, into the registry."""
        self.declared = together([users, self._shipped])
        self._known = {document.name: self._resource(document) for document in self.declared.tools}
        self._registry.replace_source(SOURCE, [tool for known in self._known.values() for tool in known.tools])

    def read_instead(self, folder: Path, copy: Path) -> None:
        """From now on `copy` counts in the place of this directory; what runs goes on."""
        before = self._known
        self._folders.read_instead(folder, copy)
        self.use(self._folders.read())
        self._left += [
            known.runner
            for name, known in before.items()
            if known.runner is not None and self._known.get(name) is not known
        ]

    @property
    def folders(self) -> Sequence[Path]:
        """The user's directories."""
        return self._folders.folders

    @property
    def watched(self) -> Sequence[Path]:
        """The directories that are read again when they change."""
        return self._folders.watched

    def _resource(self, document: ToolDocument) -> _Known:
        before = self._known.get(document.name)
        if before is not None and before.document == document:
            return before
        known = _Known(document, ())
        folder = document.document.folder

        def runner() -> Runner:
            if known.runner is None:
                known.runner = self._runner(document)
            return known.runner

        def declared_now(export: str) -> ManifestTool | None:
            now = self._known.get(document.name)
            return next((tool for tool in now.tools if tool.export.name == export), None) if now is not None else None

        check = ConfigCheck(document.name, document.config)
        resource = Resource(
            name=document.name,
            file=document.document.file,
            entry=document.document.tree["spec"]["entry"],
            files=HandlerFiles(document.entry, folder, lambda: self._folders.sealed_as(folder)),
            declared_now=declared_now,
            runner=runner,
            workspace=self._around.host.workspace,
            agents=self._around.agents,
            logger=lambda call_id: self._around.log.of(document.name, call_id),
            config=lambda: self._config(document, check),
        )
        known.tools = tuple(ManifestTool(export, resource) for export in document.exports)
        return known

    def _runner(self, document: ToolDocument) -> Runner:
        host, entry = self._around.host, document.entry
        folder = document.document.folder
        limit = document.error_message_limit
        if isinstance(entry, PythonEntry):
            if document in self._shipped.tools and entry.file is not None:
                return InProcess(document.name, entry.file, host)
            return PythonWorker(
                document.name,
                entry,
                folder=folder,
                guard=host.guard,
                environment=host.environment.build,
                config=lambda: self._config(document),
                compiled=host.state.path / "compiled_handlers",
                message_limit=limit,
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
        values = self._resolved(self._around.config.get(document.name, {}))
        if check is not None:
            check.check(values)
        return values

    def _resolved(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """With references to variables and secrets replaced. Raises `ToolError(CONFIG)`."""
        try:
            return self._around.host.references.resolve(dict(values))
        except Unresolved as unresolved:
            raise ToolError(ErrorCode.CONFIG, str(unresolved), "Tell the user: it is a matter of settings.") from None

    async def watch(self, changed: Callable[[], None]) -> None:
        """Look at the user's files again and again, until cancelled; `changed` is called after each reload."""
        seen = self._seen
        while True:
            await anyio.sleep(LOOK_S)
            look = await anyio.to_thread.run_sync(self._look, abandon_on_cancel=True)
            if look == seen:
                continue
            touched = {Path(path).parent for path, _ in seen.items() ^ look.items()}
            seen = look
            await self._reload(touched)
            changed()

    async def _reload(self, touched: Collection[Path]) -> None:
        """Read again what changed. What runs goes on as it began; calls that come get what is there now, also where
        it was not the manifest that changed, but a file beside it."""
        before = self._known
        self.use(await anyio.to_thread.run_sync(self._folders.read))
        for name, known in before.items():
            is_other = self._known.get(name) is not known or known.document.document.file.parent in touched
            if known.runner is not None and is_other:
                await known.runner.retire()

    def _look(self) -> _Look:
        """What tells one state of the directories from the next."""
        found: dict[str, tuple[int, int, int]] = {}
        for folder in self._folders.watched:
            for file in _files_below(folder):
                with suppress(OSError):  # it has just gone
                    state = file.stat()
                    found[file.path] = (state.st_ino, state.st_size, state.st_mtime_ns)
        return found

    async def close(self) -> None:
        """End what runs."""
        runners = [known.runner for known in self._known.values() if known.runner is not None]
        for runner in (*runners, *self._left):
            await runner.close()
        self._around.log.close()


def _files_below(folder: Path) -> Iterable[os.DirEntry[str]]:
    """The files of a directory of manifests and of the directories in it."""
    for entry in _entries(folder):
        if entry.name.startswith("."):
            continue
        if is_a(entry.is_dir):
            yield from (inner for inner in _entries(entry.path) if is_a(inner.is_file))
        elif is_a(entry.is_file):
            yield entry


def _entries(folder: Path | str) -> Iterable[os.DirEntry[str]]:
    try:
        yield from os.scandir(folder)
    except OSError:
        return  # gone, or not readable now: loading says so
