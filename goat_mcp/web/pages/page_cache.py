"""Pages that were fetched a short while ago, by URL. What was asked of them plays no part."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from goat_mcp.web.pages.page import Page

MAX_BYTES = 24 * 1024 * 1024
MAX_PAGES = 200


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
        while self._pages and (total > MAX_BYTES or len(self._pages) > MAX_PAGES):
            _, (_, page) = self._pages.popitem(last=False)
            total -= page.size
