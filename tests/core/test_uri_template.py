"""Which URIs belong to a template, and that a hostile template costs no time."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core.uri_template import MAX_EXPRESSIONS, matches


# NAM-6
@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("lib://{book}", "lib://a"),
        ("lib://{book}/page/{number}", "lib://a/page/7"),
        ("file:///{+path}", "file:///a/b/c.txt"),
        ("file:///{path*}", "file:///a/b/c.txt"),
        ("search://x{?q,limit}", "search://x?q=a/b&limit=3"),
        ("search://x{?q}", "search://x"),
        ("a{/rest}", "a/b/c"),
        ("plain://whole", "plain://whole"),
        ("{scheme}://x", "s://x"),
        ("x{a}{b}", "x12"),
    ],
)
def test_a_uri_made_from_a_template_matches_it(template: str, uri: str) -> None:
    assert matches(template, uri)


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("lib://{book}", "lib://a/b"),
        ("lib://{book}", "lib://"),
        ("lib://{book}", "other://a"),
        ("lib://{book}/page", "lib://a/pages"),
        ("plain://whole", "plain://whole/"),
        ("x{a}{b}", "x1"),
        ("broken{", "brokenx"),
        ("broken{}", "brokenx"),
    ],
)
def test_another_uri_does_not(template: str, uri: str) -> None:
    assert not matches(template, uri)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=5))
def test_whatever_the_values_are_the_expanded_template_matches(values: list[str]) -> None:
    template = "t://" + "/".join(f"{{v{index}}}" for index in range(len(values)))

    assert matches(template, "t://" + "/".join(quote(value, safe="", errors="surrogatepass") for value in values))


def test_a_template_made_to_take_forever_is_answered_at_once() -> None:
    template = "{+a}" * MAX_EXPRESSIONS + "!"

    # A matcher that tries every way to share 8,000 characters among fifty variables would never end.
    assert not matches(template, "a" * 8_000)
