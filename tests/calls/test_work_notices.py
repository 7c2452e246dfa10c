"""The notices at the start and the end of a call's work, for a caller that wants progress."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import anyio
import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.progress import RisingProgress
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access
from tests.calls.test_pipeline import pipeline_over
from tests.tool_doubles import fake, spec

pytestmark = pytest.mark.anyio
ENDS = r"(finished in|failed after) \d+\.\d{3} s"


@dataclass(eq=False)
class ReportingTool:
    """Reports these values, and keeps its way to report."""

    reports: list[float]
    spec: ToolSpec = field(default_factory=lambda: spec("Works"))
    ctx: ToolContext | None = None

    def validate(self, arguments: Any) -> Any:
        return arguments

    def access(self, input: Any) -> Access:
        return Access()

    async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
        self.ctx = ctx
        for done in self.reports:
            await ctx.progress(done, 10, f"at {done:g}")
        return text_result("done")


class Listener:
    """A caller with a progress token."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self.messages: list[str] = []
        self.ctx = ToolContext(call_id="c", progress=RisingProgress(self._note), wants_progress=True)

    async def _note(self, done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        self.values.append(done)
        self.messages.append(message or "")

    def check(self, *messages: str) -> None:
        """The messages are these, and the values rise."""
        assert [re.sub(ENDS, r"\1 N s", message) for message in self.messages] == list(messages)
        assert self.values == sorted(set(self.values))


async def test_what_the_tool_reports_lies_between_start_and_end(tmp_path: Path) -> None:
    listener, tool = Listener(), ReportingTool([0, 5, 10])

    await pipeline_over(tmp_path, cast("Any", tool)).call("Works", {}, listener.ctx)

    listener.check("Works started", "at 0", "at 5", "at 10", "Works finished in N s")


@pytest.mark.parametrize(
    "failure",
    [ToolError(ErrorCode.EXIT, "no"), RuntimeError("a bug"), UpstreamError(-32000, "its own error")],
    ids=["an error", "a bug", "an upstream's protocol error"],
)
async def test_a_call_that_fails_ends_too_and_says_so(tmp_path: Path, failure: Exception) -> None:
    listener = Listener()

    call = pipeline_over(tmp_path, fake("Fails", answer=failure)).call
    try:
        await call("Fails", {}, listener.ctx)
    except UpstreamError as relayed:
        assert relayed is failure or relayed.code == -32000

    listener.check("Fails started", "Fails failed after N s")


async def test_a_call_that_is_refused_has_not_started(tmp_path: Path) -> None:
    listener = Listener()

    await pipeline_over(tmp_path, fake("Read")).call("Raed", {}, listener.ctx)

    listener.check()


async def test_nothing_is_reported_after_the_end(tmp_path: Path) -> None:
    listener, tool = Listener(), ReportingTool([1])
    await pipeline_over(tmp_path, cast("Any", tool)).call("Works", {}, listener.ctx)
    assert tool.ctx is not None

    await tool.ctx.progress(7, None, "too late")

    listener.check("Works started", "at 1", "Works finished in N s")


async def test_a_cancelled_call_has_started_and_says_no_more(tmp_path: Path) -> None:
    listener, tool = Listener(), fake("Waits")
    tool.release = anyio.Event()

    async with anyio.create_task_group() as group:
        group.start_soon(pipeline_over(tmp_path, tool).call, "Waits", dict[str, Any](), listener.ctx)
        with anyio.fail_after(60):
            await tool.started.wait()
        group.cancel_scope.cancel()

    listener.check("Waits started")


async def test_the_seconds_of_the_end_are_those_of_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener, now_s = Listener(), iter([100.0, 112.5])
    monkeypatch.setattr("goat_mcp.core.progress.time", SimpleNamespace(monotonic=lambda: next(now_s)))

    await pipeline_over(tmp_path, fake("Works")).call("Works", {}, listener.ctx)

    assert listener.values == [0, 12.5]
    assert listener.messages == ["Works started", "Works finished in 12.500 s"]


@pytest.mark.parametrize("most", [1.7976931348623157e308, 10**400, float("inf"), float("nan")])
async def test_whatever_a_tool_reports_the_values_are_numbers_that_rise(tmp_path: Path, most: float) -> None:
    values: list[float] = []
    totals: list[float | None] = []

    async def note(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
        values.append(done)
        totals.append(total)

    progress = RisingProgress(note)
    for done in (most, most, 7):
        await progress(done, most)

    assert values == sorted(set(values)) and values[-1] < 1e301
    assert totals == [None] * 3
