"""Settings files of the projects that servers work in, which ask for more than the user has trusted."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread

from goat_mcp.calls.approvals.record import Approval, Kind, Request, Verdict
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import LOCAL
from goat_mcp.settings.loading import keys_in
from goat_mcp.settings.settings import path_keys, settings_of
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.trust.project import DENIALS, ProjectSettings, says_more, whole_project
from goat_mcp.state.trust.settings_file import BrokenFile, find_project_file
from goat_mcp.state.trust.store import TrustStore

MAX_FILE_CHARS = 20_000
_DENIALS = frozenset(f"{part}.{name}" for part, name in DENIALS)


class ProjectSource:
    """`folders` are the projects of servers that run now."""

    kind = Kind.PROJECT

    def __init__(
        self, state: StateDirectory, folders: Callable[[], Iterable[Path]], shown: Callable[[str], str]
    ) -> None:
        self._store = TrustStore(state)
        self._folders = folders
        self._shown = shown

    def waiting(self) -> Sequence[Request]:
        found: dict[str, Request] = {}
        for folder in self._folders():
            try:
                file = find_project_file(folder)
                project = whole_project(file, path_keys()) if file is not None and says_more(file) else None
            except BrokenFile:
                continue  # its server says so
            if project is not None and not self._is_trusted(project):
                request = self.request(project)
                found[request.subject] = request
        return list(found.values())

    def request(self, project: ProjectSettings) -> Request:
        file = str(project.file.path)
        settings = settings_in(project)
        asked = [key for key in settings if key not in _DENIALS]
        before = self._store.of(project.file.path)
        return Request(
            kind=Kind.PROJECT,
            subject=project_subject(project),
            title=self._shown(f"{file} asks for {', '.join(asked) or 'nothing more'}"),
            principal=LOCAL,
            workspace=self._shown(str(project.file.path.parent)),
            arguments=(
                *((self._shown(key), self._shown(_text(value))) for key, value in settings.items()),
                *((self._shown(str(path)), self._shown(_decoded(data))) for path, data in project.contents.items()),
            ),
            why=("it, or a file that it names, has changed since you trusted it",) if before is not None else (),
            args_sha256=project.sha256,
            facts={"file": file, "sha256": project.sha256, "keys": asked},
        )

    async def approve(self, approval: Approval, verdict: Verdict) -> str:
        """Trust exactly what was shown. Raises `ToolError(STALE)`, `BrokenSettings`."""
        return await anyio.to_thread.run_sync(self._trust, approval.request)

    async def deny(self, approval: Approval, verdict: Verdict) -> str:
        return f"{approval.request.facts['file']} is not trusted: only what it denies is in force"

    def _trust(self, request: Request) -> str:
        path = Path(request.facts["file"])
        try:
            file = find_project_file(path.parent)
            project = None if file is None else whole_project(file, path_keys())
        except BrokenFile as broken:
            raise ToolError(ErrorCode.STALE, str(broken), "It was not trusted.") from None
        if project is None or project_subject(project) != request.subject:
            raise ToolError(
                ErrorCode.STALE,
                f"{path} has changed since it was shown; it was not trusted",
                "Look at it again: goat-mcp approvals.",
            )
        settings_of(project.tree, str(path))
        self._store.trust(project.file.path, project.sha256)
        return f"{path} is trusted as it was shown"

    def _is_trusted(self, project: ProjectSettings) -> bool:
        trusted = self._store.of(project.file.path)
        return trusted is not None and trusted.sha256 == project.sha256


def project_subject(project: ProjectSettings) -> str:
    return f"{project.file.path}:{project.sha256}"


def settings_in(project: ProjectSettings) -> dict[str, Any]:
    """What it sets, by key."""
    found: dict[str, Any] = {}
    for key in keys_in(dict(project.tree)):
        value: Any = project.tree
        for level in key.split("."):
            value = value[level]
        found[key] = json.loads(json.dumps(value, default=str))
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _decoded(data: bytes) -> str:
    text = data.decode("utf-8", "backslashreplace")
    rest = len(text) - MAX_FILE_CHARS
    return text if rest <= 0 else f"{text[:MAX_FILE_CHARS]}\n[... {rest:,} more characters]"
