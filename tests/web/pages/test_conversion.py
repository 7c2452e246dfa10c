"""The worker that turns HTML into Markdown. Pages that attack it are tested with WebFetch."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.computing import worker_process
from goat_mcp.web.pages import pages as conversion
from goat_mcp.web.pages.fetched_page import Markdown
from goat_mcp.web.pages.pages import MAX_WORKERS, HtmlConverter
from tests.tools.fetching import WatchedGuard

pytestmark = pytest.mark.anyio


CONVERTER = HtmlConverter(ProcessGuard())


async def convert(body: bytes, limit_s: float = 60) -> Markdown:
    return await CONVERTER.markdown(
        body, content_type="text/html; charset=utf-8", url="https://example.com/", limit_s=limit_s
    )


async def test_a_page_comes_back_as_markdown() -> None:
    assert await convert("<p>Zürich <a href=/x>x</a>".encode()) == Markdown("Zürich [x](https://example.com/x)", ())


async def test_pages_are_converted_side_by_side() -> None:
    texts: list[str] = []

    async def one(number: int) -> None:
        texts.append((await convert(b"<p>%d" % number)).text)

    async with anyio.create_task_group() as group:
        for number in range(6):
            group.start_soon(one, number)

    assert sorted(texts) == ["0", "1", "2", "3", "4", "5"]


async def test_pages_that_take_long_wait_for_each_other_and_leave_everybody_elses_threads_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(worker_process, "_START", "import time; time.sleep(600)")
    guard = WatchedGuard()
    converter = HtmlConverter(guard)

    async def convert_slowly() -> None:
        await converter.markdown(b"<p>", content_type="", url="https://example.com/", limit_s=300)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for _ in range(50):
                group.start_soon(convert_slowly)
            await guard.begun(MAX_WORKERS)
            assert anyio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
            group.cancel_scope.cancel()
        await guard.ended(MAX_WORKERS)

    assert len(guard.watched) == MAX_WORKERS


async def test_a_page_that_gets_no_place_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_START", "import time; time.sleep(600)")
    monkeypatch.setattr(conversion, "MAX_WORKERS", 1)
    guard = WatchedGuard()
    converter = HtmlConverter(guard)

    async def convert_within(limit_s: float) -> None:
        await converter.markdown(b"<p>", content_type="", url="https://example.com/", limit_s=limit_s)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(convert_within, 300)
            await guard.begun(1)
            with pytest.raises(ToolError) as refused:
                await convert_within(0.2)
            assert refused.value.code is ErrorCode.TIMEOUT
            group.cancel_scope.cancel()
        await guard.ended(1)

    assert len(guard.watched) == 1


async def test_a_page_that_takes_too_long_is_shown_in_part() -> None:
    converted = await convert(b"<p>first</p>" + b"<b>x</b>" * 600_000)

    assert converted.text.startswith("first\n\n**x**")
    assert "the page is not shown to its end" in converted.notices[0]


async def test_what_is_too_deep_is_told() -> None:
    assert (await convert(b"<p>a" + b"<div>" * 600)).notices == (
        "what is nested more than 512 elements deep was left out",
    )


async def test_nothing_of_the_environment_reaches_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "html2text.py").write_text("raise SystemExit(9)")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("PYTHONSTARTUP", str(tmp_path / "html2text.py"))
    monkeypatch.setenv("SECRET_KEY", "canary")
    monkeypatch.setattr(worker_process, "_START", "import os; open(1, 'w').write('{}\\n' + repr(dict(os.environ)))")

    def as_it_came(answer: bytes) -> Markdown:
        return Markdown(answer.decode(), ())

    monkeypatch.setattr(conversion, "_read", as_it_came)

    told = (await convert(b"")).text

    assert "canary" not in told
    assert "PYTHONPATH" not in told


async def test_a_worker_that_breaks_is_an_error_that_offers_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_START", "raise SystemExit(3)")

    with pytest.raises(ToolError) as refused:
        await convert(b"<p>" * 1_000_000)

    assert (refused.value.code, "exit code 3" in refused.value.message) == (ErrorCode.TOOL, True)
    assert "raw=true" in refused.value.suggestion


async def test_no_descriptor_stays_open() -> None:
    await convert(b"<p>warm")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names only

    for _ in range(5):
        await convert(b"<p>x")

    assert len(os.listdir("/proc/self/fd")) <= before + 1  # noqa: PTH208 - names only
