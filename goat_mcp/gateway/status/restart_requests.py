"""`restarts/` in the state directory: the user wants an upstream started again, and what each server did about it.

`ID.json` is a request of `goat-mcp restart`, `ID.PID.json` the answer of one serving process.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import anyio.to_thread

from goat_mcp.core.redaction import Redactor
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import TEMP_PREFIX, write_private
from goat_mcp.state.telemetry import Telemetry
from goat_mcp.upstreams.upstreams import Upstreams

LOOK_S = 0.5
MAX_AGE_S = 60.0
"""Older requests are what a killed command left."""
STARTS_WITHIN_S = 30.0
READ_WITHIN_S = 2.0
"""How long a changed file of servers may take to be read."""
_FOLDER = "restarts"
_SUFFIX = ".json"


class RestartRequest:
    """One request, as the command sees it that makes it."""

    def __init__(self, state: StateDirectory, name: str) -> None:
        """Raises `OSError`."""
        self._folder = state.folder(_FOLDER)
        self._id = secrets.token_hex(8)
        _write(self._folder / f"{self._id}{_SUFFIX}", {"name": name, "at_s": time.time()})

    def answers(self) -> list[dict[str, Any]]:
        """What processes have answered so far: `pid`, `state` (`starting`, then that of the upstream; `unknown` if
        there is none of this name), `reason_code`, `detail`, `tool_count`."""
        found = [_read(file) for file in sorted(self._folder.glob(f"{self._id}.*{_SUFFIX}"))]
        return sorted((one for one in found if one is not None), key=lambda one: one.get("pid", 0))

    def end(self) -> None:
        """Remove what it and earlier requests left."""
        for file in self._folder.iterdir():
            with suppress(OSError):  # another process was faster
                is_old = time.time() - file.stat().st_mtime > MAX_AGE_S
                if is_old or file.name.removeprefix(TEMP_PREFIX).startswith(self._id):
                    file.unlink()


class RestartRequests:
    """Sees requests, and does what they ask for, in one serving process."""

    def __init__(self, state: StateDirectory, pid: int, upstreams: Upstreams, telemetry: Telemetry, redactor: Redactor):
        self._folder = state.path / _FOLDER
        self._pid = pid
        self._upstreams = upstreams
        self._telemetry = telemetry
        self._redactor = redactor
        self._seen: set[str] = set()
        self._one_at_a_time: dict[str, anyio.Lock] = {}

    async def watch(self) -> None:
        """Until cancelled."""
        async with anyio.create_task_group() as group:
            while True:
                for request, name in await anyio.to_thread.run_sync(self._new, abandon_on_cancel=True):
                    group.start_soon(self._restart, request, name)
                await anyio.sleep(LOOK_S)

    def _new(self) -> list[tuple[str, str]]:
        try:
            files = sorted(self._folder.iterdir())
        except OSError:
            return []
        requests = {file.name.removesuffix(_SUFFIX): file for file in files if file.name.count(".") == 1}
        self._seen &= requests.keys()
        found: list[tuple[str, str]] = []
        for request in requests.keys() - self._seen:
            self._seen.add(request)
            match _read(requests[request]):
                case {"name": str(name), "at_s": float(at_s)} if time.time() - at_s < MAX_AGE_S:
                    found.append((request, name))
                case _:
                    pass
        return found

    async def _restart(self, request: str, name: str) -> None:
        is_known = self._is_known(name)
        with anyio.move_on_after(READ_WITHIN_S):
            while not is_known:  # its entry may have been added just now
                await anyio.sleep(LOOK_S / 5)
                is_known = self._is_known(name)
        await self._answer(request, {"state": "starting" if is_known else "unknown"})
        if not is_known:
            return
        # The second of two requests would end what the first one waits for.
        async with self._one_at_a_time.setdefault(name, anyio.Lock()):
            self._telemetry.warning("upstream is started again, as the user wants it", upstream=name)
            status = await self._upstreams.restarted(name, STARTS_WITHIN_S)
        if status is not None:
            told = {"reason_code": str(status.reason_code), "detail": status.detail, "tool_count": status.tool_count}
            await self._answer(request, self._redactor.tree({"state": str(status.state), **told}))

    def _is_known(self, name: str) -> bool:
        return any(name in (config.name, config.server) for config in self._upstreams.configs)

    async def _answer(self, request: str, answer: Mapping[str, Any]) -> None:
        file = self._folder / f"{request}.{self._pid}{_SUFFIX}"
        with suppress(OSError):  # nobody waits for it any more
            await anyio.to_thread.run_sync(partial(_write, file, {"pid": self._pid, **answer}))


def _write(file: Path, document: Mapping[str, Any]) -> None:
    write_private(file, json.dumps(document).encode("ascii"), synced=False)


def _read(file: Path) -> dict[str, Any] | None:
    try:
        document: Any = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None
    return cast("dict[str, Any]", document) if isinstance(document, dict) else None
