"""`requests/` in the state directory: what the user wants running servers to do, and what each did about it.

`ID.json` is a request of a command or of the page, `ID.PID.json` the answer of one serving process.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread

from goat_mcp.core.redaction import Redactor
from goat_mcp.gateway.status.running_work import RunningWork
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import TEMP_PREFIX, write_private
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.status import UpstreamStatus
from goat_mcp.upstreams.upstreams import Upstreams

LOOK_S = 0.4
MAX_AGE_S = 60.0
"""Older requests are what a killed command left."""
STARTS_WITHIN_S = 30.0
READ_WITHIN_S = 2.0
"""How long a changed file of servers may take to be read."""
UNKNOWN = "unknown"
"""The `state` in an answer if the process has nothing of this name."""
_FOLDER = "requests"
_SUFFIX = ".json"


class RequestKind(StrEnum):
    """`restart` and `stop` name an upstream, `cancel` the id of a call or of a background task, `revoke` an approval
    that granted rules to a session."""

    RESTART = "restart"
    STOP = "stop"
    CANCEL = "cancel"
    REVOKE = "revoke"


class UserRequest:
    """One request, as whoever makes it sees it."""

    def __init__(self, state: StateDirectory, kind: RequestKind, name: str) -> None:
        """Raises `OSError`."""
        self._folder = state.folder(_FOLDER)
        self._id = secrets.token_hex(8)
        _write(self._folder / f"{self._id}{_SUFFIX}", {"kind": kind.value, "name": name, "at_s": time.time()})

    def answers(self) -> list[dict[str, Any]]:
        """What processes have answered so far: `pid`, `state` (`starting`, then that of the upstream; `cancelled`;
        `unknown` if there is none of this name), and of an upstream `reason_code`, `detail`, `tool_count`."""
        found = [_read(file) for file in sorted(self._folder.glob(f"{self._id}.*{_SUFFIX}"))]
        return sorted((one for one in found if one is not None), key=lambda one: one.get("pid", 0))

    def end(self) -> None:
        """Remove what it and earlier requests left."""
        for file in self._folder.iterdir():
            with suppress(OSError):  # another process was faster
                is_old = time.time() - file.stat().st_mtime > MAX_AGE_S
                if is_old or file.name.removeprefix(TEMP_PREFIX).startswith(self._id):
                    file.unlink()


class RequestWatcher:
    """Sees requests, and does what they ask for, in one serving process."""

    def __init__(
        self,
        state: StateDirectory,
        pid: int,
        *,
        upstreams: Upstreams,
        running: RunningWork,
        revoke: Callable[[str], Awaitable[bool]],
        telemetry: Telemetry,
        redactor: Redactor,
    ) -> None:
        self._folder = state.path / _FOLDER
        self._pid = pid
        self._upstreams = upstreams
        self._running = running
        self._revoke = revoke
        self._telemetry = telemetry
        self._redactor = redactor
        self._seen: set[str] = set()
        self._one_at_a_time: dict[str, anyio.Lock] = {}

    async def watch(self) -> None:
        """Until cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                for request, kind, name in await anyio.to_thread.run_sync(self._new, abandon_on_cancel=True):
                    group.start_soon(self._carry_out, request, kind, name)
                await anyio.sleep(LOOK_S)

    def _new(self) -> list[tuple[str, RequestKind, str]]:
        try:
            files = sorted(self._folder.iterdir())
        except OSError:
            return []
        requests = {file.name.removesuffix(_SUFFIX): file for file in files if file.name.count(".") == 1}
        self._seen &= requests.keys()
        found: list[tuple[str, RequestKind, str]] = []
        for request in requests.keys() - self._seen:
            self._seen.add(request)
            match _read(requests[request]):
                case {"kind": str(kind), "name": str(name), "at_s": float(at_s)} if (
                    time.time() - at_s < MAX_AGE_S and kind in list(RequestKind)
                ):
                    found.append((request, RequestKind(kind), name))
                case _:
                    pass
        return found

    async def _carry_out(self, request: str, kind: RequestKind, name: str) -> None:
        if kind is RequestKind.CANCEL:
            answers = self._cancel(name)
        elif kind is RequestKind.REVOKE:
            answers = self._take_back(name)
        else:
            answers = self._upstream(kind, name)
        async for answer in answers:
            file = self._folder / f"{request}.{self._pid}{_SUFFIX}"
            with suppress(OSError):  # nobody waits for it any more
                await anyio.to_thread.run_sync(partial(_write, file, {"pid": self._pid, **answer}))

    async def _cancel(self, id: str) -> AsyncIterator[Mapping[str, Any]]:
        cancelled = await self._running.cancel(id)
        if cancelled is not None:
            self._telemetry.warning("cancelled, as the user wants it", id=id, tool=cancelled["tool"])
        yield {"state": UNKNOWN if cancelled is None else "cancelled"}

    async def _take_back(self, id: str) -> AsyncIterator[Mapping[str, Any]]:
        is_ours = await self._revoke(id)
        if is_ours:
            self._telemetry.warning("a session's grant is taken back, as the user wants it", approval=id)
        yield {"state": "revoked" if is_ours else UNKNOWN}

    async def _upstream(self, kind: RequestKind, name: str) -> AsyncIterator[Mapping[str, Any]]:
        is_known = self._is_known(name)
        with anyio.move_on_after(READ_WITHIN_S):
            while not is_known:  # its entry may have been added just now
                await anyio.sleep(LOOK_S / 5)
                is_known = self._is_known(name)
        if not is_known:
            yield {"state": UNKNOWN}
            return
        if kind is RequestKind.STOP:
            self._telemetry.warning("upstream is stopped, as the user wants it", upstream=name)
            yield self._answer(await self._upstreams.restarted(name, None))
            return
        yield {"state": "starting"}
        # The second of two requests would end what the first one waits for.
        async with self._one_at_a_time.setdefault(name, anyio.Lock()):
            self._telemetry.warning("upstream is started again, as the user wants it", upstream=name)
            status = await self._upstreams.restarted(name, STARTS_WITHIN_S)
        yield self._answer(status)

    def _answer(self, status: UpstreamStatus | None) -> Mapping[str, Any]:
        if status is None:
            return {"state": UNKNOWN}
        fields = {"reason_code": str(status.reason_code), "detail": status.detail, "tool_count": status.tool_count}
        return self._redactor.tree({"state": str(status.state), **fields})

    def _is_known(self, name: str) -> bool:
        return any(name in (config.name, config.server) for config in self._upstreams.configs)


def _write(file: Path, document: Mapping[str, Any]) -> None:
    write_private(file, json.dumps(document).encode("ascii"), synced=False)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        document: Any = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", document) if isinstance(document, dict) else None
