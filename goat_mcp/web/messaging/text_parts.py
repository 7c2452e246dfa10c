"""A long text as several messages, cut where it hurts least. Lengths are UTF-16 code units, as messengers count."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.web.messaging.markup import Entity, Piece, Pieces, plain

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
