"""`last_runs/SERVER-HASH.json` in the state directory: how each upstream failed last, and the end of its stderr.

It outlasts the process, for `status`, `logs` and `doctor`. One small file for each upstream, without secrets, written
when something has changed; that of an upstream that is gone is removed.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from goat_mcp.core.redaction import Redactor
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.private_file import write_private
from goat_mcp.upstreams.status import STDERR_ENDS, ReasonCode, UpstreamState, UpstreamStatus

if TYPE_CHECKING:  # whoever only reads the files does without
    from goat_mcp.upstreams.config.entry import UpstreamConfig
    from goat_mcp.upstreams.upstreams import Upstreams

KEPT_FILES = 200
MAX_DETAIL_CHARS = 4000
MAX_STDERR_CHARS = 8000
_FOLDER = "last_runs"
_SUFFIX = ".json"


@dataclass(frozen=True, kw_only=True)
class LastRun:
    """What is known of one upstream. Times are seconds since 1970, 0 for never.

    `failed_at_s` is when it began to fail in this way, `worked_at_s` when it first worked after that. `origin` names
    the files that configured it.
    """

    name: str
    reason_code: str = ""
    detail: str = ""
    failed_at_s: float = 0.0
    worked_at_s: float = 0.0
    stderr_tail: str = ""
    stderr_at_s: float = 0.0
    pid: int = 0
    origin: str = ""

    @property
    def cause(self) -> str:
        """Why it failed, without what it wrote to stderr."""
        return self.detail.partition(STDERR_ENDS)[0]

    @property
    def stderr_lines(self) -> list[str]:
        """The last that is known: of the failed start, or else of the last connection."""
        failed_tail = self.detail.partition(STDERR_ENDS)[2]
        return (failed_tail if failed_tail and self.failed_at_s >= self.stderr_at_s else self.stderr_tail).splitlines()

    def wire(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name != "origin"}


def record_key(config: UpstreamConfig) -> str:
    """Names the file of an upstream. Another command or address is another upstream."""
    return f"{config.server[:80]}-{config.fingerprint[:16]}"


class LastRuns:
    """Reads and writes the files. All but `note` blocks: for a thread."""

    def __init__(self, state: StateDirectory, redactor: Redactor, origin: Sequence[Path] = ()) -> None:
        self._state = state
        self._redactor = redactor
        self._origin = "\n".join(map(str, origin))
        self._seen: dict[str, tuple[object, ...]] | None = None
        """What was seen last, by key: the same again needs no look at the file."""

    async def note(self, upstreams: Upstreams) -> None:
        """`update` in a thread, with how they stand now."""
        if upstreams.configs:
            statuses = upstreams.status()
            await anyio.to_thread.run_sync(self.update, statuses, upstreams.configs, abandon_on_cancel=True)

    def all(self) -> dict[str, LastRun]:
        """By key."""
        found: dict[str, LastRun] = {}
        with suppress(OSError):  # none yet, or not readable: nothing to show
            for file in sorted((self._state.path / _FOLDER).iterdir()):
                if file.suffix == _SUFFIX and (run := _read(file)) is not None:
                    found[file.stem] = run
        return found

    def update(self, statuses: Iterable[UpstreamStatus], configs: Sequence[UpstreamConfig]) -> None:
        """Note what is new, and remove what is about upstreams that are gone. Never raises: it is a convenience."""
        keys = {config.name: record_key(config) for config in configs}
        now = {keys[status.name]: status for status in statuses if status.server and status.name in keys}
        with suppress(OSError):  # a full disk must not stop the server that it describes
            if self._seen is None:
                self._forget_others(now.keys())
            before = self._seen or {}
            self._seen = {key: _news(status) for key, status in now.items()}
            for key in before.keys() - now.keys():
                self._file(key).unlink(missing_ok=True)
            for key, status in now.items():
                if before.get(key) != self._seen[key]:
                    self._note(key, status)

    def _forget_others(self, kept: Collection[str]) -> None:
        """Remove the files of upstreams that the same files configured earlier, and the oldest of too many."""
        runs = self.all()
        by_age = sorted(runs, key=lambda key: max(runs[key].failed_at_s, runs[key].stderr_at_s), reverse=True)
        for key in by_age:
            if (runs[key].origin == self._origin and key not in kept) or key in by_age[KEPT_FILES:]:
                self._file(key).unlink(missing_ok=True)

    def _note(self, key: str, status: UpstreamStatus) -> None:
        path = self._file(key)
        known = _read(path)
        before = known or LastRun(name=status.name)
        now = self._after(before, status)
        if now == before or (known is None and not now.failed_at_s and not now.stderr_tail):
            return
        self._state.folder(_FOLDER)
        stamped = replace(now, pid=os.getpid(), origin=self._origin)
        write_private(path, json.dumps(asdict(stamped)).encode("ascii"), synced=False)

    def _after(self, before: LastRun, status: UpstreamStatus) -> LastRun:
        now_s = time.time()
        run = before
        failure = status.last_failure
        if failure is not None and failure.at_s > run.failed_at_s:
            detail = self._redactor.text(failure.detail)[:MAX_DETAIL_CHARS]
            if (failure.reason_code, detail) == (run.reason_code, run.detail) and run.worked_at_s < run.failed_at_s:
                return run  # try after try: it fails since then
            run = replace(run, reason_code=str(failure.reason_code), detail=detail, failed_at_s=failure.at_s)
        if status.reason_code == ReasonCode.LIST_FAILED and run.reason_code != ReasonCode.LIST_FAILED:
            detail = self._redactor.text(status.detail)[:MAX_DETAIL_CHARS]
            run = replace(run, reason_code=str(ReasonCode.LIST_FAILED), detail=detail, failed_at_s=now_s)
        works = status.state is UpstreamState.READY and not status.reason_code
        if works and run.worked_at_s < run.failed_at_s:
            run = replace(run, worked_at_s=now_s)
        tail = self._redactor.text(status.stderr_tail)[-MAX_STDERR_CHARS:]
        if tail and tail != run.stderr_tail:
            run = replace(run, stderr_tail=tail, stderr_at_s=now_s)
        return run

    def _file(self, key: str) -> Path:
        return self._state.path / _FOLDER / f"{key}{_SUFFIX}"


def _news(status: UpstreamStatus) -> tuple[object, ...]:
    return (status.last_failure, status.state, status.reason_code, status.stderr_tail)


def _read(file: Path) -> LastRun | None:
    """None if there is none, or nothing of use: it is written again with the next change."""
    try:
        stored: Any = json.loads(file.read_bytes())
        values: dict[str, Any] = {one.name: stored[one.name] for one in fields(LastRun)}
    except (OSError, ValueError, LookupError, TypeError):
        return None
    texts = {one.name for one in fields(LastRun) if one.type == "str"}
    fits = all(isinstance(value, str if name in texts else int | float) for name, value in values.items())
    return LastRun(**values) if fits else None
