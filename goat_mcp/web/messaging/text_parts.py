"""A long text as several messages, cut where it hurts least. Lengths are UTF-16 code units, as messengers count.

Enough of each messenger's markup is read to cut a text between pieces, and to close and reopen what a cut goes through;
the messenger decides whether a text is well formed."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from goat_mcp.core.errors import ToolError

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


_TOO_SMALL = 10
"""A part below this share of the limit is not worth keeping an entity whole for."""


def utf16_length(text: str) -> int:
    return len(text) + sum(character > "\uffff" for character in text)


def split_text(text: str, limit: int, pieces: Pieces = plain) -> list[str]:
    """Parts of at most `limit` units that hold all of the text, and in each of which what is opened is closed.

    Cut where no entity is open if that can be had, then between paragraphs, lines, words; never within a character.
    Parts of blanks only are left out: no messenger takes them.
    """
    if utf16_length(text) <= limit:
        return [text]
    rest = list(pieces(text))
    parts: list[str] = []
    open_before: tuple[Entity, ...] = ()
    start = 0
    while start < len(rest):
        opening = "".join(entity.opening for entity in open_before)
        end = _end_of_part(rest, start, limit - utf16_length(opening))
        if end == start:  # what would be opened again takes up everything
            opening, end = "", max(start + 1, _end_of_part(rest, start, limit))
        body = "".join(piece.text for piece in rest[start:end])
        open_before = rest[end - 1].open
        closing = "".join(entity.closing for entity in reversed(open_before)) if end < len(rest) else ""
        if body.strip():
            parts.append(f"{opening}{body}{closing}")
        start = end
    return parts


def _end_of_part(pieces: Sequence[Piece], start: int, room: int) -> int:
    """Behind which piece a part that begins at `start` ends; `start` where not even one fits."""
    used = 0
    best = start
    best_score: tuple[bool, bool, int, int] | None = None
    before = ""
    for index in range(start, len(pieces)):
        piece = pieces[index]
        used += utf16_length(piece.text)
        closing = sum(utf16_length(entity.closing) for entity in piece.open)
        if used > room:
            return best
        if used + closing <= room:
            is_whole = not piece.open and used * _TOO_SMALL >= room
            score = (is_whole, used * 2 >= room, _rank(before, piece.text), index)
            if best_score is None or score >= best_score:
                best, best_score = index + 1, score
        before = piece.text
    return len(pieces)


def _rank(before: str, last: str) -> int:
    """How good a place it is to cut after `last`: a paragraph's end, a line's, a word's, none."""
    if last in ("\n", "\r\n"):
        return 3 if before in ("\n", "\r\n") else 2
    return 1 if last.isspace() else 0


T = TypeVar("T")


async def send_each(parts: Sequence[str], send: Callable[[str, bool], Awaitable[T]], key: str) -> list[T]:
    """What `send` gives for each part; its second argument is whether it is the first. `key` is what the failure's
    facts call those that were sent. Raises the `ToolError` of the one that failed."""
    sent: list[T] = []
    for part in parts:
        try:
            sent.append(await send(part, not sent))
        except ToolError as failed:
            if not sent:
                raise
            raise ToolError(
                failed.code,
                f"{len(sent)} of {len(parts)} messages were sent, then: {failed.message}",
                f"Send only the rest. {failed.suggestion}",
                facts={**(failed.facts or {}), key: sent},
                name=failed.name,
            ) from None
    return sent
