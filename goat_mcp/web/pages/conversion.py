"""HTML to Markdown in a process of its own, which is killed when it overruns or nobody waits for it (R-NET-7)."""

from __future__ import annotations

import json
from typing import NamedTuple

import anyio
import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.computing.worker_process import WorkerProcess

MAX_WORKERS = 4
"""Pages that are converted at once; each may take a core and half a gigabyte, and the next ones wait."""


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
        """What a person would see of the page. Raises `ToolError` if that cannot be found out in time."""
        request = json.dumps({"content_type": content_type[:200], "url": url}).encode("ascii") + b"\n"
        worker = WorkerProcess(self._guard, "goat_mcp.web.pages.html_worker", ("html2text",))
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


def _read(answer: bytes) -> Markdown:
    head, _, text = answer.partition(b"\n")
    said = json.loads(head)
    notices: list[str] = []
    if said["cut"]:
        notices.append(f"the page is not shown to its end: {said['cut']}; raw=true gives the HTML")
    if said["is_too_deep"]:
        notices.append("what is nested more than 512 elements deep was left out")
    return Markdown(text.decode("utf-8", "replace"), tuple(notices))
