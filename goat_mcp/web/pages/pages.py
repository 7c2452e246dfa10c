"""`Pages`: fetches web pages for WebFetch, caches them and gives their text. Loaded at the first fetch.

HTML becomes Markdown in a process of its own, which is killed when it overruns or nobody waits for it (R-NET-7).
"""

from __future__ import annotations

import json
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple

import anyio
import anyio.to_thread

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.visible_text import drop_hidden, make_visible
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.computing.worker_process import WorkerProcess
from goat_mcp.web.http import HttpClient
from goat_mcp.web.options import WebOptions
from goat_mcp.web.pages.charset import decode_page
from goat_mcp.web.pages.fetched_page import Markdown, Page
from goat_mcp.web.pages.fetching import MAX_BODY_BYTES, CrossHostRedirect, Deadline, Fetcher

MAX_WORKERS = 4
"""Pages that are converted at once; each may take a core and half a gigabyte, and the next ones wait."""


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


_COMMENT, _COMMENT_END = "<!--", "-->"
_COMMENT_OR_FENCE = re.compile(r"<!--|^ {0,3}(`{3,})(?=[^`\n]*$)|^ {0,3}(~{3,})", re.MULTILINE)


def without_comments(markdown: str) -> str:
    """The text less its comments; what is in a fenced code block is seen and stays. Takes time as its length does.

    A fence ends as CommonMark has it: a line of the same character, at least as often, and nothing else.
    """
    parts: list[str] = []
    at = 0
    while (found := _COMMENT_OR_FENCE.search(markdown, at)) is not None:
        if found[0] == _COMMENT:
            parts.append(markdown[at : found.start()])
            end = markdown.find(_COMMENT_END, found.end())
            at = len(markdown) if end < 0 else end + len(_COMMENT_END)
        else:
            fence = found[1] or found[2]
            closing = re.compile(rf"^ {{0,3}}{fence[0]}{{{len(fence)},}}[ \t]*$", re.MULTILINE)
            end_line = closing.search(markdown, found.end())
            end = len(markdown) if end_line is None else end_line.end()
            parts.append(markdown[at:end])
            at = end
    parts.append(markdown[at:])
    return "".join(parts)


MAX_CACHE_BYTES = 24 * 1024 * 1024
MAX_CACHED_PAGES = 200


class PageCache:
    """Bounded; the least recently used go first. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._pages: OrderedDict[str, tuple[float, Page]] = OrderedDict()

    def get(self, url: str, max_age_s: float) -> Page | None:
        found = self._pages.get(url)
        if found is None:
            return None
        stored_at_s, page = found
        if self._clock() - stored_at_s >= max_age_s:
            del self._pages[url]
            return None
        self._pages.move_to_end(url)
        return page

    def put(self, url: str, page: Page) -> None:
        self._pages[url] = (self._clock(), page)
        self._pages.move_to_end(url)
        self.shrink()

    def shrink(self) -> None:
        """Forget what is too much. Pages grow once they are converted."""
        total = sum(page.size for _, page in self._pages.values())
        while self._pages and (total > MAX_CACHE_BYTES or len(self._pages) > MAX_CACHED_PAGES):
            _, (_, page) = self._pages.popitem(last=False)
            total -= page.size


class FetchedPage(NamedTuple):
    page: Page
    from_cache: bool


class Pages:
    """One per gateway. `clock` gives seconds."""

    def __init__(
        self, http: HttpClient, options: WebOptions, guard: ProcessGuard, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._fetcher = Fetcher(http, options, clock)
        self._cache = PageCache(clock)
        self._converter = HtmlConverter(guard)
        self._proxy = http.proxy

    def deadline(self, limit_s: float) -> Deadline:
        return Deadline(limit_s, self._clock)

    async def visit(self, url: str, deadline: Deadline, *, cache_s: float) -> FetchedPage | CrossHostRedirect:
        """The page at `url`, from here if it was fetched within `cache_s`. Raises `ToolError`."""
        first = self._fetcher.first_target(url)
        kept = self._cache.get(first.url, cache_s)
        if kept is not None:
            return FetchedPage(kept, from_cache=True)
        found = await self._fetcher.fetch(first, deadline)
        if isinstance(found, CrossHostRedirect):
            return found
        if found.status == 200 and cache_s > 0:
            self._cache.put(first.url, found)
        return FetchedPage(found, from_cache=False)

    async def text(self, page: Page, deadline: Deadline, *, raw: bool) -> Markdown:
        """The page as Markdown, or as it was sent. Either way nothing hides in it. Raises `ToolError`."""
        cut = (f"the page is longer than {MAX_BODY_BYTES:,} bytes: the rest was not read",) if page.is_cut else ()
        proxy = (
            (f"fetched through the proxy {self._proxy}, which checks addresses in our place",) if self._proxy else ()
        )
        if page.is_html and not raw:
            if page.markdown is None:
                page.markdown = await self._converter.markdown(
                    page.body, content_type=page.content_type, url=page.final_url, limit_s=deadline.left_s
                )
                self._cache.shrink()
            return Markdown(page.markdown.text, (*page.markdown.notices, *cut, *proxy))
        text = await anyio.to_thread.run_sync(_plain_text, page, raw)
        return Markdown(text, (*cut, *proxy))


def _plain_text(page: Page, raw: bool) -> str:
    text = decode_page(page.body, page.content_type).replace("\r\n", "\n").replace("\r", "\n")
    if raw:
        return make_visible(text)
    if page.media_type in ("text/markdown", "text/x-markdown"):
        text = without_comments(text)
    return drop_hidden(text)
