"""HTML to Markdown in a process of its own, which is killed when it overruns or nobody waits for it (R-NET-7)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import anyio
import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.subprocesses import ProcessGuard

MAX_WORKERS = 4
"""Pages that are converted at once; each may take a core and half a gigabyte, and the next ones wait."""
_PACKAGE_PARENT = str(Path(__file__).resolve().parents[2])
# Without site it starts in half the time, and nothing of the environment reaches it.
_START = "import sys; sys.path[:0] = sys.argv[1:]; from goat_mcp.web.html_worker import main; main()"
_PASSED_VARIABLES = ("SYSTEMROOT",)


class Markdown(NamedTuple):
    """`notices` say what of the page is missing."""

    text: str
    notices: tuple[str, ...]


class HtmlConverter:
    """Starts a worker for each page: some 50 ms on another core, and nothing is kept of one page for the next."""

    def __init__(self, guard: ProcessGuard) -> None:
        self._guard = guard
        # Of its own: pages that take long must not use up the threads everybody else works in.
        self._places = anyio.CapacityLimiter(MAX_WORKERS)

    async def markdown(self, body: bytes, *, content_type: str, url: str, limit_s: float) -> Markdown:
        """What a person would see of the page. Raises `ToolError` where that cannot be found out in time."""
        request = json.dumps({"content_type": content_type[:200], "url": url}).encode("ascii") + b"\n"
        worker = _Worker(self._guard)
        answer: bytes | None = None
        try:
            with anyio.move_on_after(limit_s):
                answer = await anyio.to_thread.run_sync(
                    worker.run, (request, body), abandon_on_cancel=True, limiter=self._places
                )
        finally:
            worker.kill()
        if answer is None:
            problem = f"was not converted within {limit_s:.3g} s"
        elif worker.exit_code != 0:
            problem = f"broke the converter (exit code {worker.exit_code})"
        else:
            return await anyio.to_thread.run_sync(_read, answer)
        raise ToolError(
            ErrorCode.TIMEOUT if answer is None else ErrorCode.TOOL,
            f"the HTML of {url.partition('?')[0][:300]} {problem}",
            "Call again with raw=true for the HTML itself.",
        )


class _Worker:
    """One process. `kill` may come from another thread at any time, also before it has started."""

    def __init__(self, guard: ProcessGuard) -> None:
        self._guard = guard
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False
        self.exit_code: int | None = None

    def run(self, parts: tuple[bytes, ...]) -> bytes:
        process = self._start()
        if process is None:
            return b""
        self._guard.watch(process.pid)
        try:
            out, _ = process.communicate(b"".join(parts))
        finally:
            process.kill()
            process.wait()
            self._guard.forget(process.pid)
        self.exit_code = process.returncode
        return out

    def kill(self) -> None:
        with self._lock:
            self._is_killed = True
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._lock:
            if self._is_killed:
                return None
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _START, _PACKAGE_PARENT, _folder_of("html2text")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/" if os.name == "posix" else None,
                env={name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ},
                process_group=0 if os.name == "posix" else None,
            )
            return self._process


def _folder_of(package: str) -> str:
    found = find_spec(package)
    if found is None or found.origin is None:
        raise ToolError(ErrorCode.NOT_CONFIGURED, f"{package} is not installed", f"Ask the user to install {package}.")
    return str(Path(found.origin).parents[1])


def _read(answer: bytes) -> Markdown:
    head, _, text = answer.partition(b"\n")
    said = json.loads(head)
    notices: list[str] = []
    if said["cut"]:
        notices.append(f"the page is not shown to its end: {said['cut']}; raw=true gives the HTML")
    if said["is_too_deep"]:
        notices.append("what is nested more than 512 elements deep was left out")
    return Markdown(text.decode("utf-8", "replace"), tuple(notices))
