"""Marked-up texts as pieces that must not be divided, each with what is open after it.

Enough of each messenger's syntax to cut a text between pieces, and to close and open again what a cut goes through;
whether a text is well formed is the messenger's to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

_MAX_PIECE = 500
"""Characters of a link or a tag that is kept whole."""
_MAX_OPEN = 16
"""Elements inside each other that are closed and opened again; no message has more."""
# A character with what belongs to it: accents, variation selectors, skin tones, what is joined to it, a flag's half.
_CHARACTER = (
    r"\r\n|[\U0001F1E6-\U0001F1FF]{2}"
    r"|.(?:[\u0300-\u036F\u20D0-\u20FF\uFE00-\uFE0F\U0001F3FB-\U0001F3FF]|\u200D.){0,20}"
)
_LINK = rf"!?\[(?:\\.|[^\[\]\\\n]){{0,{_MAX_PIECE}}}\]\((?:\\.|[^)\\\n]){{0,{_MAX_PIECE}}}\)"


class Entity(NamedTuple):
    """What is open: what opens it again, and what closes it."""

    opening: str
    closing: str


class Piece(NamedTuple):
    """`open` is what is open after it, outermost first."""

    text: str
    open: tuple[Entity, ...] = ()


Pieces = Callable[[str], Iterator[Piece]]


def _pattern(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join((*parts, _CHARACTER)), re.DOTALL)


_PLAIN = _pattern()
_HTML = _pattern(rf"</?[A-Za-z][^<>]{{0,{_MAX_PIECE}}}>", r"&#?\w{1,30};")
_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9-]*)")
_FENCE = r"```(?:[A-Za-z0-9_+#.-]{0,40}\n)?"
_IN_CODE = _pattern(r"\\.", "`")
_IN_PRE = _pattern(r"\\.", "```")
_MARKDOWN_V2 = _pattern(_FENCE, r"\\.", "`", _LINK, r"\|\|", "__", "[*_~]")
_MARKDOWN = _pattern(_FENCE, r"\\[_*`\[]", "`", _LINK, "[*_]")
_MRKDWN = _pattern("```", "`", rf"<[^<>\n]{{1,{_MAX_PIECE}}}>", r"&\w{1,10};", r":[a-z0-9_+'-]{1,80}:")
_MARKS = frozenset({"*", "_", "~", "__", "||"})


def plain(text: str) -> Iterator[Piece]:
    """A text without any markup."""
    return (Piece(found[0]) for found in _PLAIN.finditer(text))


def html(text: str) -> Iterator[Piece]:
    """Telegram's HTML: tags and character references are whole, elements are closed and opened again."""
    stack: list[tuple[str, Entity]] = []
    for found in _HTML.finditer(text):
        piece = found[0]
        if (tag := _TAG.match(piece)) is not None:
            name = tag[2].lower()
            if not tag[1]:
                stack.append((name, Entity(piece, f"</{tag[2]}>")))
            elif stack and stack[-1][0] == name:
                stack.pop()
        yield Piece(piece, tuple(entity for _, entity in stack[:_MAX_OPEN]))


def markdown_v2(text: str) -> Iterator[Piece]:
    """Telegram's MarkdownV2."""
    return _marked(text, _MARKDOWN_V2)


def markdown(text: str) -> Iterator[Piece]:
    """Telegram's older Markdown."""
    return _marked(text, _MARKDOWN)


def mrkdwn(text: str) -> Iterator[Piece]:
    """Slack's: only code goes on behind a cut. Its other marks are often plain characters, e.g. in `snake_case`."""
    return _marked(text, _MRKDWN)


OF_TELEGRAM: Mapping[str, Pieces] = {"HTML": html, "MarkdownV2": markdown_v2, "Markdown": markdown}


def _marked(text: str, outside: re.Pattern[str]) -> Iterator[Piece]:
    stack: list[Entity] = []
    inside: re.Pattern[str] | None = None
    position = 0
    while position < len(text):
        found = (inside or outside).match(text, position)
        assert found is not None  # any character at all is one of the alternatives
        position = found.end()
        piece = found[0]
        if inside is not None:
            if piece == stack[-1].closing:
                stack.pop()
                inside = None
        elif piece.startswith("```"):
            stack.append(Entity(piece, "```"))
            inside = _IN_PRE
        elif piece == "`":
            stack.append(Entity(piece, "`"))
            inside = _IN_CODE
        elif piece in _MARKS and outside is not _MRKDWN:
            if Entity(piece, piece) in stack:
                stack.remove(Entity(piece, piece))
            else:
                stack.append(Entity(piece, piece))
        yield Piece(piece, tuple(stack))
