"""Transcripts of agents on disk, so that they can be resumed, also after this process was killed.

One file an agent: a line of facts, then a line for each message. Contents are private to the principal and workspace.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from pydantic import TypeAdapter

from goat_mcp.agents.engine import AgentState
from goat_mcp.core.errors import ErrorCode, ToolError, cut_middle
from goat_mcp.core.model import ModelMessage
from goat_mcp.core.result import Block, text_block
from goat_mcp.state.database import Warn
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import no_warning, set_aside, write_private

MAX_FILES = 200
MAX_AGE_S = 7 * 24 * 3600.0
MAX_FILE_BYTES = 16 * 1024 * 1024
_SHOWN = 10
_NONE = "No agent here can be resumed: only one whose model has answered can. Leave out resume to start one."
_NO_IMAGE = "[an image that is no longer kept]"

PAUSE_S = 1.0
_SHARE_OF_TIME = 20
"""A long transcript is written as seldom as it takes to spend no more than a twentieth of the time on it."""


@dataclass(frozen=True, kw_only=True)
class AgentFacts:
    """A stored agent without its messages. `worktree` is where it worked, if that still exists; `isolation` is set in
    either case."""

    id: str
    principal: str
    workspace: str
    type: str
    title: str
    name: str = ""
    resume_token: str = ""
    isolation: str = ""
    worktree: dict[str, str] | None = None
    ended_at_s: float = 0.0


_FACTS = TypeAdapter(AgentFacts)


@dataclass(frozen=True)
class AgentRecord:
    facts: AgentFacts
    messages: tuple[ModelMessage, ...] = ()


@dataclass(frozen=True)
class AgentRecords:
    """At most 200 a workspace, for 7 days. Blocking; a file is replaced in one step."""

    state: StateDirectory
    warn: Warn = no_warning

    def write(self, record: AgentRecord, *, has_ended: bool = True) -> bool:
        """Store a record; without its images if it is too large. Returns False if it is still too large, which removes
        it. Raises `OSError`.

        The record of a running agent survives a killed process, not a power failure: it is not synced.
        """
        data = packed(record, MAX_FILE_BYTES)
        path = self._path(record.facts.workspace, record.facts.id)
        if len(data) > MAX_FILE_BYTES:
            path.unlink(missing_ok=True)
            return False
        write_private(path, data, synced=has_ended)
        if has_ended:
            self._prune(path.parent)
        return True

    def keep(self, data: bytes) -> None:
        """Store what another replica has `packed`, unless a newer record is here. Raises `OSError`."""
        facts = _facts(data.partition(b"\n")[0].decode("ascii"))
        if facts is None:
            return
        path = self._path(facts.workspace, facts.id)
        mine = _facts(_first_line(path))
        if mine is None or mine.ended_at_s < facts.ended_at_s:
            write_private(path, data)

    def find(self, id_or_name: str, principal: str, workspace: str) -> AgentRecord:
        """The agent with this id, else the newest with this name.

        Raises `ToolError(TASK_UNKNOWN)`, which lists those that can be resumed.
        """
        known = sorted(self._known(principal, workspace), key=lambda facts: -facts.ended_at_s)
        found = next((facts for facts in known if facts.id == id_or_name), None)
        found = found or next((facts for facts in known if facts.name == id_or_name), None)
        record = None if found is None else self._read(self._path(workspace, found.id))
        if record is None:
            listed = [f"{facts.id} ({facts.name or facts.title[:60]})" for facts in known[:_SHOWN]]
            raise ToolError(
                ErrorCode.TASK_UNKNOWN,
                f"resume: there is no agent {cut_middle(id_or_name, 80)!r} that could go on",
                f"Newest first: {', '.join(listed)}." if listed else _NONE,
                facts={"agents": [facts.id for facts in known[:_SHOWN]]},
            )
        return record

    def _known(self, principal: str, workspace: str) -> Iterator[AgentFacts]:
        for path in self._folder(workspace).glob("[!.]*.jsonl"):
            facts = _facts(_first_line(path))
            if facts is None:
                set_aside(path, self.warn)
            elif (facts.principal, facts.workspace) == (principal, workspace):
                yield facts

    def _read(self, path: Path) -> AgentRecord | None:
        try:
            first, *lines = path.read_text(encoding="utf-8").splitlines()
            messages = tuple(_message(json.loads(line)) for line in lines)
        except (OSError, ValueError, TypeError, KeyError):
            set_aside(path, self.warn)
            return None
        facts = _facts(first)
        return None if facts is None else AgentRecord(facts, messages)

    def _folder(self, workspace: str) -> Path:
        return self.state.folder("agents", hashlib.sha256(workspace.encode("utf-8", "surrogatepass")).hexdigest()[:16])

    def _path(self, workspace: str, agent_id: str) -> Path:
        return self._folder(workspace) / f"{agent_id}.jsonl"

    def _prune(self, folder: Path) -> None:
        now_s = time.time()
        by_age: list[tuple[float, Path]] = []
        for path in folder.iterdir():
            with contextlib.suppress(OSError):  # another process prunes too
                by_age.append((path.stat().st_mtime, path))
        for index, (modified_s, path) in enumerate(sorted(by_age, reverse=True)):
            if index >= MAX_FILES or now_s - modified_s > MAX_AGE_S:
                path.unlink(missing_ok=True)


def packed(record: AgentRecord, max_bytes: int) -> bytes:
    """The record as it is stored now; without its images if it would be longer than `max_bytes`."""
    record = replace(record, facts=replace(record.facts, ended_at_s=time.time()))
    data = _stored(record)
    if len(data) <= max_bytes:
        return data
    return _stored(replace(record, messages=tuple(map(_without_images, record.messages))))


def _stored(record: AgentRecord) -> bytes:
    lines = [asdict(record.facts), *({"role": one.role, "content": list(one.content)} for one in record.messages)]
    return "".join(json.dumps(line) + "\n" for line in lines).encode("ascii")


def _first_line(path: Path) -> str:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline(64 * 1024)
    except (OSError, ValueError):
        return ""


def _facts(line: str) -> AgentFacts | None:
    try:
        facts = _FACTS.validate_json(line, strict=True)
    except ValueError:
        return None
    return facts if facts.id.isalnum() else None


def _message(given: Any) -> ModelMessage:
    role = given["role"]
    content = tuple(dict(block) for block in given["content"])
    if role not in ("user", "assistant") or not content:
        raise ValueError("no message")
    return ModelMessage(role, content)


def _without_images(message: ModelMessage) -> ModelMessage:
    return ModelMessage(message.role, tuple(map(_without_image, message.content)))


def _without_image(block: Block) -> Block:
    if block.get("type") == "image":
        return text_block(_NO_IMAGE)
    if block.get("type") == "tool_result":
        return {**block, "content": [_without_image(inner) for inner in block.get("content", [])]}
    return block


class RunningTranscript:
    """Writes the newest state of a running agent in a thread: the first at once, then one at a time with a pause.

    After this process was killed, the agent can be resumed from there. `write` may raise `OSError`; the first is passed
    to `on_problem`.
    """

    def __init__(self, write: Callable[[AgentState], None], on_problem: Callable[[OSError], None]) -> None:
        self._write = write
        self._on_problem = on_problem
        self._newest: AgentState | None = None
        self._has_news = asyncio.Event()
        self._in_use = threading.Lock()
        self._is_over = False

    def put(self, state: AgentState) -> None:
        """Schedule the write; never waits."""
        self._newest = state
        self._has_news.set()

    @asynccontextmanager
    async def writing(self) -> AsyncGenerator[None]:
        """States are written while this is open, and not after that, not even one already scheduled."""
        # A task group would wrap the exceptions of the body.
        writer = asyncio.create_task(self._write_news())
        try:
            yield
        finally:
            writer.cancel()
            with anyio.CancelScope(shield=True):
                await asyncio.wait({writer})
                await anyio.to_thread.run_sync(self._end)

    async def _write_news(self) -> None:
        while True:
            await self._has_news.wait()
            self._has_news.clear()
            since_s = time.monotonic()
            try:
                await anyio.to_thread.run_sync(self._write_newest)
            except OSError as problem:
                self._on_problem(problem)
                return
            await anyio.sleep(max(PAUSE_S, (time.monotonic() - since_s) * _SHARE_OF_TIME))

    def _write_newest(self) -> None:
        with self._in_use:
            if self._newest is not None and not self._is_over:
                self._write(self._newest)

    def _end(self) -> None:
        with self._in_use:  # a thread goes on when its task is cancelled
            self._is_over = True
