"""HTML as a stream of text and tags, read as browsers read it, in time that grows with its length only.

The standard library's parser shows unclosed comments as text, raises on odd declarations, prints the rest of a page as
it is after a stray `&#`, and rereads what is not closed again and again. What tags mean lives in `visible_markdown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from typing import Literal

_OPENING = re.compile(r"<(?:(?P<start>[a-zA-Z][^\s/>]*)|/(?P<end>[a-zA-Z][^\s/>]*)|(?P<comment>!--)|(?P<other>[!?/]))")
_ATTRIBUTE = re.compile(r"[\s/]*([^\s/>][^\s/>=]*)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([\"'])|([^\s>]*)))?")
_TAG_END = re.compile(r"[\s/]*>")
_COMMENT_END = re.compile(r"--!?>")
_RAW_ELEMENTS = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes", "plaintext", "textarea", "title"})
_UNESCAPED_ELEMENTS = frozenset({"textarea", "title"})
_RAW_END = {name: re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE) for name in _RAW_ELEMENTS}
_HUGE_NUMBER = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
_MAX_ATTRIBUTES = 64


Token = tuple[Literal["text", "start", "end"], str, dict[str, str], bool]
"""What it is, the text or a tag's name in lower case, attributes, and whether the tag ends in `/>`.

A plain tuple, as a page of 1 MB has some 50,000 of them.
"""
_NONE: dict[str, str] = {}


def tokens(html: str) -> Iterator[Token]:
    """Read a whole page. What is between the tags of `script` and the like comes as one text; comments do not come."""
    if "&#" in html:
        # Python refuses to read numbers of thousands of digits; no character has one of eight.
        html = _HUGE_NUMBER.sub("\ufffd", html)
    at, end = 0, len(html)
    while at < end:
        opening = _OPENING.search(html, at)
        if opening is None:
            yield "text", _text(html[at:]), _NONE, False
            return
        if opening.start() > at:
            yield "text", _text(html[at : opening.start()]), _NONE, False
        at = opening.end()
        if (name := opening["start"]) is not None:
            name = name.lower()
            attributes, at, closes_itself = _attributes(html, at)
            if at < 0:
                return  # the page ends inside a tag, which then counts for nothing
            yield "start", name, attributes, closes_itself
            if name in _RAW_ELEMENTS and not closes_itself:
                raw_end = _RAW_END[name].search(html, at)
                until = end if raw_end is None else raw_end.start()
                raw = html[at:until]
                yield "text", _text(raw) if name in _UNESCAPED_ELEMENTS else raw, _NONE, False
                at = until
        elif (name := opening["end"]) is not None:
            at = _after(html, ">", at)
            yield "end", name.lower(), _NONE, False
        elif opening["comment"]:
            at = _after_comment(html, at)
        else:
            at = _after(html, ">", at)


def _attributes(html: str, at: int) -> tuple[dict[str, str], int, bool]:
    """The attributes from here (the first of a name counts), where the tag ends or -1, and whether with `/>`."""
    found: dict[str, str] = {}
    while True:
        tag_end = _TAG_END.match(html, at)
        if tag_end is not None:
            return found, tag_end.end(), html.startswith("/", tag_end.end() - 2)
        attribute = _ATTRIBUTE.match(html, at)
        if attribute is None:
            return found, -1, False
        at = attribute.end()
        name, double, single, open_quote, bare = attribute.groups()
        if open_quote:
            return found, -1, False
        if len(found) < _MAX_ATTRIBUTES:
            found.setdefault(name.lower(), _text(double or single or bare or ""))


def _after(html: str, mark: str, at: int) -> int:
    found = html.find(mark, at)
    return len(html) if found < 0 else found + len(mark)


def _after_comment(html: str, at: int) -> int:
    for empty in (">", "->"):
        if html.startswith(empty, at):
            return at + len(empty)
    found = _COMMENT_END.search(html, at)
    return len(html) if found is None else found.end()


def _text(text: str) -> str:
    return unescape(text) if "&" in text else text
