"""A page's tags and texts in order, read in one pass whose time grows with its length only.

Enough for result pages of a known layout. It is not an HTML parser: that one can be kept busy for minutes by a page
made for it.
"""

from __future__ import annotations

import html
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass

_NAME = re.compile(r"/?[a-zA-Z][a-zA-Z0-9]*")
_ATTRIBUTE_NAME = re.compile(r"[^\s=>/\"']+")
_BARE_VALUE = re.compile(r"[^\s>]*")
_RAW = frozenset({"script", "style"})


@dataclass(frozen=True, slots=True)
class Tag:
    """`name` is lower-case and starts with `/` for an end tag."""

    name: str
    attributes: Mapping[str, str]

    @property
    def classes(self) -> frozenset[str]:
        return frozenset(self.attributes.get("class", "").split())


def read_markup(page: str) -> Generator[Tag | str]:
    """Tags, and the texts between them with entities resolved. Ends early at a tag that never ends."""
    at = 0
    while True:
        start = page.find("<", at)
        if start < 0:
            yield html.unescape(page[at:])
            return
        if start > at:
            yield html.unescape(page[at:start])
        if page.startswith("<!--", start):
            at = _after(page, "-->", start + 4)
            continue
        name = _NAME.match(page, start + 1)
        if name is None:
            if page[start + 1 : start + 2] in ("!", "?"):
                at = _after(page, ">", start)
            else:
                yield "<"
                at = start + 1
            continue
        attributes, at = _attributes(page, name.end())
        tag = Tag(name.group().lower(), attributes)
        yield tag
        if tag.name in _RAW:
            end = page.find(f"</{tag.name}", at)
            at = len(page) if end < 0 else end


def _after(page: str, mark: str, at: int) -> int:
    found = page.find(mark, at)
    return len(page) if found < 0 else found + len(mark)


def _attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """A tag's attributes from `at` on, and where the tag is over."""
    attributes: dict[str, str] = {}
    while at < len(page) and page[at] != ">":
        name = _ATTRIBUTE_NAME.match(page, at)
        if name is None:
            at += 1
            continue
        at = name.end()
        value = ""
        if page.startswith("=", at):
            value, at = _value(page, at + 1)
        attributes.setdefault(name.group().lower(), html.unescape(value))
    return attributes, at + 1


def _value(page: str, at: int) -> tuple[str, int]:
    quote = page[at : at + 1]
    if quote in ('"', "'"):
        end = page.find(quote, at + 1)
        return ("", len(page)) if end < 0 else (page[at + 1 : end], end + 1)
    bare = _BARE_VALUE.match(page, at)
    return (bare.group(), bare.end()) if bare is not None else ("", at)
