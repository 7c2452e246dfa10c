"""DuckDuckGo's result page, in the forms it comes in."""

from __future__ import annotations

import pytest

from goat_mcp.web.search.duckduckgo import DuckDuckGo
from goat_mcp.web.search.provider import ChallengedByProvider, SearchHit, UnexpectedFormat


def hits(page: str) -> tuple[SearchHit, ...]:
    return DuckDuckGo().read(page.encode()).hits


def result(href: str, title: str = "T", snippet: str = '<a class="result__snippet" href="/x">S</a>') -> str:
    return (
        f"""<div class='result web-result'><h2><a href="{href}" class="x result__a">{title}</a></h2>{snippet}</div>"""
    )


@pytest.mark.parametrize(
    ("href", "url"),
    [
        ("//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.com%2Fx%3Fy%3D1%26z%3D%252F&amp;rut=1", "https://a.com/x?y=1&z=%2F"),
        ("/l/?rut=1&uddg=https%3A%2F%2Fa.com%2F", "https://a.com/"),
        ("https://duckduckgo.com/l/?uddg=http%3A%2F%2Fb%C3%BCcher.example%2F", "http://bücher.example/"),
        ("https://a.com/direct?x=1&amp;y=2", "https://a.com/direct?x=1&y=2"),
        (
            "https://notduckduckgo.com/l/?uddg=https%3A%2F%2Fb.com",
            "https://notduckduckgo.com/l/?uddg=https%3A%2F%2Fb.com",
        ),
        ("https://duckduckgo.com/about", "https://duckduckgo.com/about"),
    ],
)
def test_a_result_leads_where_its_link_finally_leads(href: str, url: str) -> None:
    assert hits(result(href)) == (SearchHit("T", url, "S"),)


def test_advertisements_are_left_out_with_their_texts() -> None:
    marked = result("https://ad.com/").replace("web-result", "result--ad")
    by_link = result("https://duckduckgo.com/y.js?ad_domain=a.com", "Buy", "<div class=result__snippet>Cheap</div>")
    bare = result("https://a.com/", "A", "")

    assert hits(bare + marked + by_link + bare) == (SearchHit("A", "https://a.com/", ""),) * 2


def test_a_snippet_may_be_any_element_and_hold_others() -> None:
    snippet = "<td class=\"result__snippet\">a <b>b</b> &amp; <a href='/x'>c</a>&hellip;</td>"

    assert hits(result("https://a.com/", "<b>T</b>&#x27;s", snippet)) == (
        SearchHit("T's", "https://a.com/", "a b & c…"),
    )


def test_scripts_and_styles_of_a_title_are_no_words_of_it() -> None:
    title = "T<script>if (a<b) '</a>'</script><style>a<b</style>s"

    assert hits(result("https://a.com/", title)) == (SearchHit("Ts", "https://a.com/", "S"),)


@pytest.mark.parametrize(
    "page",
    ['<div class="no-results">No results.</div>', '<div class="result result--no-result">No more results</div>'],
)
def test_a_page_that_says_so_has_no_results(page: str) -> None:
    assert hits(page) == ()


@pytest.mark.parametrize("page", ["", "<html></html>", "plain", "<style>.result__a{}</style>", "<!-- no-results -->"])
def test_a_page_that_does_not_say_so_is_not_understood(page: str) -> None:
    with pytest.raises(UnexpectedFormat):
        hits(page)


def test_a_challenge_is_one_even_beside_results() -> None:
    with pytest.raises(ChallengedByProvider):
        hits(result("https://a.com/") + '<form id="challenge-form"></form>')


@pytest.mark.parametrize("cut", range(0, 140, 7))
def test_a_page_cut_anywhere_is_read_as_far_as_it_goes(cut: int) -> None:
    whole, last = result("https://a.com/"), result("https://b.com/")

    assert hits(whole + last[:cut])[0] == SearchHit("T", "https://a.com/", "S")
