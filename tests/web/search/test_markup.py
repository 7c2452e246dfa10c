"""Tags and texts of a page, however broken, in time that grows with its length."""

from __future__ import annotations

import time

import pytest

from goat_mcp.web.search.markup import Tag, read_markup


def read(page: str) -> list[str]:
    """Texts as they are, tags as `[name attribute=value]`."""
    parts: list[str] = []
    for part in read_markup(page):
        if isinstance(part, Tag):
            parts.append(f"[{' '.join([part.name, *(f'{name}={value}' for name, value in part.attributes.items())])}]")
        elif part:
            parts.append(part)
    return parts


@pytest.mark.parametrize(
    ("page", "parts"),
    [
        ("a<B Class='x y' id=z checked>c</B>", ["a", "[b class=x y id=z checked=]", "c", "[/b]"]),
        ('<a href="a>b&amp;c" href="second"/>d', ["[a href=a>b&c]", "d"]),
        ("1 < 2 &lt; 3 <4", ["1 ", "<", " 2 < 3 ", "<", "4"]),
        ("a<!-- <b> -->c<!doctype html><?php ?>d", ["a", "c", "d"]),
        ("<script>if (a<b) '</div>'</script>x", ["[script]", "[/script]", "x"]),
        ("<style>a<b</stylex", ["[style]", "[/stylex]"]),
        ("<a href='unending>x", ["[a href=]"]),
        ("<a b", ["[a b=]"]),
        ("a<!-- b", ["a"]),
        ("<", ["<"]),
        ("<a = '' b==c>", ["[a b==c]"]),
    ],
)
def test_markup_is_read_as_browsers_read_it(page: str, parts: list[str]) -> None:
    assert read(page) == parts


@pytest.mark.parametrize(
    "piece", ["<", "<a ", "<a b='", "<!--", "<a b=\"'", "<script>", "</", "<!", "&#", "<a/", "<a b=c ", "<a>"]
)
def test_a_page_made_to_keep_the_reader_busy_does_not(piece: str) -> None:
    page = piece * (2_000_000 // len(piece))
    # It takes a second or two; a reader that looks back, or ahead from every tag, would take hours.
    ends_s = time.process_time() + 60

    for _ in read_markup(page):
        assert time.process_time() < ends_s
