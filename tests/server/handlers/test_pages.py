"""Long lists in pages: nothing is left out or comes twice, and a cursor is good for its own list only (AGG-4)."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.shared.exceptions import MCPError

from goat_mcp.server.handlers.lists import Pages


def entries(count: int) -> list[dict[str, Any]]:
    return [{"uri": f"x://{number}"} for number in range(count)]


def all_pages(pages: Pages, listed: list[dict[str, Any]]) -> list[list[Any]]:
    found: list[list[Any]] = []
    cursor: str | None = None
    while True:
        page, cursor = pages.page(listed, cursor)
        found.append(list(page))
        if cursor is None:
            return found


@given(st.integers(0, 40), st.integers(1, 10))
def test_the_pages_together_are_the_list(count: int, page_size: int) -> None:
    listed = entries(count)

    found = all_pages(Pages("resources", page_size), listed)

    assert [one for page in found for one in page] == listed
    assert len(found) == max(1, -(-count // page_size))


@pytest.mark.parametrize("change", ["one more", "one less", "another order"])
def test_a_cursor_of_the_list_as_it_was_is_refused_and_says_what_to_do(change: str) -> None:
    pages, before = Pages("resources", 2), entries(5)
    _, cursor = pages.page(before, None)
    after = {"one more": entries(6), "one less": entries(4), "another order": before[::-1]}[change]

    with pytest.raises(MCPError) as refused:
        pages.page(after, cursor)

    assert cursor is not None
    assert refused.value.error.code == -32602
    assert refused.value.error.message == "this cursor is of another list: list resources from the start"


def test_a_cursor_outlives_the_process_that_gave_it() -> None:
    listed = entries(5)
    _, cursor = Pages("resources", 2).page(listed, None)

    page, _ = Pages("resources", 2).page(list(listed), cursor)

    assert list(page) == listed[2:4]


@pytest.mark.parametrize("cursor", ["", "2", "AAAA", "é", "YWJjLjI=", "\ud800"])
def test_what_is_no_cursor_of_ours_is_refused(cursor: str) -> None:
    with pytest.raises(MCPError):
        Pages("resources", 2).page(entries(5), cursor)


@pytest.mark.parametrize("start", [-4, -2, 0, 1, 3, 5, 6, 8, 10**9])
def test_a_cursor_that_we_never_gave_out_is_refused_though_it_names_the_list(start: int) -> None:
    pages, listed = Pages("resources", 2), entries(5)
    _, cursor = pages.page(listed, None)
    assert cursor is not None
    digest = urlsafe_b64decode(cursor).decode().partition(".")[0]

    with pytest.raises(MCPError):
        pages.page(listed, urlsafe_b64encode(f"{digest}.{start}".encode()).decode())
