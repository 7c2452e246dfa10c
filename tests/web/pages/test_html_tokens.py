"""How HTML is cut into text and tags."""

from __future__ import annotations

import time

import pytest

from goat_mcp.web.pages.html_tokens import tokens


def read(html: str) -> list[tuple[str, str]]:
    return [(kind, value) for kind, value, _, _ in tokens(html)]


def attributes(html: str) -> dict[str, str]:
    return next(found for kind, _, found, _ in tokens(html) if kind == "start")


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<P>a</P >b", [("start", "p"), ("text", "a"), ("end", "p"), ("text", "b")]),
        ("a<!-->b<!--->c<!-- d -->e", [("text", "a"), ("text", "b"), ("text", "c"), ("text", "e")]),
        ("<!doctype html><?xml?>a</>b", [("text", "a"), ("text", "b")]),
        ("<script>a</b></script x>b", [("start", "script"), ("text", "a</b>"), ("end", "script"), ("text", "b")]),
        ("<title>&lt;b></title>", [("start", "title"), ("text", "<b>"), ("end", "title")]),
        ("&#" + "9" * 10_000 + ";x", [("text", "\ufffdx")]),
        ("a<b", [("text", "a")]),
        ("a<", [("text", "a<")]),
        ("<svg/>a", [("start", "svg"), ("text", "a")]),
    ],
)
def test_tokens_are_those_of_a_browser(html: str, found: list[tuple[str, str]]) -> None:
    assert read(html) == found


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<a b=1 C='2' d=\"3>\" e>", {"b": "1", "c": "2", "d": "3>", "e": ""}),
        ("<a b = 1 b=2>", {"b": "1"}),
        ("<a b=&amp;&eacute; c='&quot;'>", {"b": "&é", "c": '"'}),
        ("<a/b/c=d/>", {"b": "", "c": "d/"}),
        ("<a =b>", {"=b": ""}),
        ("<a\nb\t=\nc>", {"b": "c"}),
        ("<a>", {}),
    ],
)
def test_attributes_are_read_with_and_without_quotes(html: str, found: dict[str, str]) -> None:
    assert attributes(html) == found


def test_a_tag_of_many_attributes_keeps_the_first_ones() -> None:
    assert len(attributes("<a " + " ".join(f"a{n}=1" for n in range(1_000)) + ">")) == 64


@pytest.mark.parametrize(
    "piece", ["<", "<a ", "<a b='", "<!--", "<a b=\"'", "<script>", "</", "<!", "&#", "<a/", "<a b=c ", "<a>"]
)
def test_a_page_made_to_keep_the_reader_busy_does_not(piece: str) -> None:
    page = piece * (2_000_000 // len(piece))
    # It takes a second or two; a reader that looks back, or ahead from every tag, would take hours.
    ends_s = time.process_time() + 60

    for _ in tokens(page):
        assert time.process_time() < ends_s
