"""Which pages are kept, and how often a host is asked."""

from __future__ import annotations

import subprocess
import sys

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.web.pages.fetched_page import Markdown, Page
from goat_mcp.web.pages.fetching import HostRateLimiter
from goat_mcp.web.pages.pages import MAX_CACHE_BYTES, MAX_CACHED_PAGES, PageCache, without_comments


def page(size: int = 1) -> Page:
    return Page("https://x/", "https://x/", 200, "text/html", b"x" * size)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_page_is_given_until_it_is_too_old() -> None:
    clock, kept = Clock(), page()
    cache = PageCache(clock)
    cache.put("u", kept)

    clock.now_s = 9.9
    young = cache.get("u", 10)
    clock.now_s = 10

    assert (young, cache.get("u", 10), cache.get("u", 100)) == (kept, None, None)


def test_the_least_recently_used_go_first() -> None:
    cache = PageCache(Clock())
    for number in range(MAX_CACHED_PAGES):
        cache.put(str(number), page())
    cache.get("0", 10)

    cache.put("one more", page())

    assert cache.get("0", 10) is not None
    assert cache.get("1", 10) is None


def test_pages_that_grew_count_with_their_text() -> None:
    cache, grown = PageCache(Clock()), page()
    cache.put("grown", grown)
    cache.put("other", page(1_000))
    grown.markdown = Markdown("x" * MAX_CACHE_BYTES, ())

    cache.shrink()

    assert cache.get("grown", 10) is None
    assert cache.get("other", 10) is not None


def test_a_minute_that_slides_decides_how_often_a_host_is_asked() -> None:
    clock = Clock()
    rate = HostRateLimiter(2, clock)
    rate.take("a")
    clock.now_s = 30
    rate.take("a")
    rate.take("b")

    clock.now_s = 59.5
    with pytest.raises(ToolError) as refused:
        rate.take("a")
    clock.now_s = 60
    rate.take("a")

    assert (refused.value.code, refused.value.suggestion) == (
        ErrorCode.RATE,
        "Call again in 1 s, or fetch something else.",
    )


def test_hosts_that_were_not_asked_for_a_while_are_forgotten() -> None:
    clock = Clock()
    rate = HostRateLimiter(1, clock)
    for number in range(5_000):
        clock.now_s += 1
        rate.take(f"host-{number}")

    assert len(vars(rate)["_taken"]) <= 1_100


@pytest.mark.parametrize(
    ("markdown", "kept"),
    [
        ("a <!-- b --> c", "a  c"),
        ("a <!-- b\n\nc --> d", "a  d"),
        ("a <!-- b", "a "),
        ("<!-- a --><!-- b -->c", "c"),
        ("```html\n<!-- a -->\n```\n<!-- b -->", "```html\n<!-- a -->\n```\n"),
        ("~~~\n<!-- a -->\n~~~\n<!-- b -->", "~~~\n<!-- a -->\n~~~\n"),
        ("```\n<!-- a -->", "```\n<!-- a -->"),
        ("````\n```\n<!-- a -->\n````\n<!-- b -->", "````\n```\n<!-- a -->\n````\n"),
        ("~~~\n```\n~~~\n<!-- b -->", "~~~\n```\n~~~\n"),
        ("```\n``` not the end\n```\n<!-- b -->", "```\n``` not the end\n```\n"),
        ("``` no `fence`\n<!-- b -->", "``` no `fence`\n"),
        ("    ```\n<!-- b -->", "    ```\n"),
        ("<!--\n```\n-->\n<!-- b -->", "\n"),
        ("no comment", "no comment"),
        ("", ""),
    ],
)
def test_only_what_is_in_a_fence_stays(markdown: str, kept: str) -> None:
    assert without_comments(markdown) == kept


@pytest.mark.parametrize(
    "markdown",
    ["'<!---->' * 700_000", "'```\\n```\\n' * 600_000 + '<!--'", "'<!-- ' * 1_000_000", "'`' * 5_000_000 + 'x<!--'"],
    ids=["comments", "fences", "openings", "backticks"],
)
def test_a_page_made_to_take_long_does_not(markdown: str) -> None:
    """Some seconds at most; what takes time as the square of the length would take hours."""
    program = f"from goat_mcp.web.pages.pages import without_comments; without_comments({markdown})"

    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
