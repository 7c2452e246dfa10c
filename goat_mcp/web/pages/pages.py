"""`Pages`: what WebFetch sees of the web. Fetches, keeps for a while, and gives text. Loaded at the first fetch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import anyio.to_thread

from goat_mcp.files.documents.visible_text import drop_hidden, make_visible
from goat_mcp.processes import ProcessGuard
from goat_mcp.web.http import HttpClient
from goat_mcp.web.pages.charset import decode_page
from goat_mcp.web.pages.conversion import HtmlConverter, Markdown
from goat_mcp.web.pages.fetching import MAX_BODY_BYTES, Deadline, Elsewhere, Fetcher
from goat_mcp.web.pages.markdown_comments import without_comments
from goat_mcp.web.pages.options import WebOptions
from goat_mcp.web.pages.page import Page
from goat_mcp.web.pages.page_cache import PageCache


class Visit(NamedTuple):
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

    async def visit(self, url: str, deadline: Deadline, *, cache_s: float) -> Visit | Elsewhere:
        """The page at `url`, from here if it was fetched within `cache_s`. Raises `ToolError`."""
        first = self._fetcher.first_target(url)
        kept = self._cache.get(first.url, cache_s)
        if kept is not None:
            return Visit(kept, from_cache=True)
        found = await self._fetcher.fetch(first, deadline)
        if isinstance(found, Elsewhere):
            return found
        if found.status == 200 and cache_s > 0:
            self._cache.put(first.url, found)
        return Visit(found, from_cache=False)

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
