"""Noticing text that stands for code left out ("... rest of code ...") before it replaces that code."""

from __future__ import annotations

import re

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.visible_text import make_visible
from goat_mcp.files.editing.matching import to_bytes

_COMMENT = re.compile(r"^\s*(?:/\*+|//+|#+|--+|;+|%+|\*+|<!--+|\{/\*|\(\*|'|\"\"\"|rem\b)\s*", re.IGNORECASE)
_COMMENT_END = re.compile(r"\s*(?:\*+/\}?|--+>|\*\)|\"\"\")\s*$")
_ELLIPSIS = re.compile(r"\.{3,}|\u2026")
_BRACKETED = re.compile(r"\s*[(\[{<].*[)\]}>]\s*")
_LEFT_OUT = re.compile(
    r"""\b(?:
        (?:the\s+)?(?:rest|remainder)(?:\s+of\b|\s+(?:is|are|stays?|remains?)\b|\s*$|\s+unchanged\b)
      | (?:existing|remaining|previous|unchanged|other|original|same)\s+
        (?:\w+\s+)?(?:code|content|contents|implementation|logic|methods?|functions?|lines?|imports?|text|tests?|
        fields?|properties|props|styles?|rules|cases|classes|definitions?|entries|items|stuff|parts?|sections?)
      | (?:code|content|implementation|methods?|functions?|lines?|everything|logic|imports?|text)\s+
        (?:\w+\s+){0,2}(?:unchanged|omitted|as\s+before|stays?\s+the\s+same|remains?|goes\s+here|continues)
      | (?:unchanged|omitted|same\s+as\s+(?:before|above)|no\s+changes?|as\s+before|(?:for|omitted\s+for)\s+brevity)
    )\b""",
    re.IGNORECASE | re.VERBOSE,
)
_MAX_LINE_CHARS = 160
"""A longer line says something of its own."""
_MAX_BARE_WORDS = 6
"""Of a line that is neither a comment nor in brackets nor begins with an ellipsis."""
_MAX_LINES_NAMED = 20


def placeholder_lines(text: str) -> list[str]:
    """The lines of `text` that only say that something was left out, without the blanks around them."""
    if not _ELLIPSIS.search(text):
        return []
    return [line.strip() for line in text.splitlines() if _is_placeholder(line)]


def added_placeholders(new: str, before: bytes) -> list[str]:
    """Placeholder lines of `new` that the UTF-8 content `before` does not hold."""
    return [line for line in placeholder_lines(new) if to_bytes(line) not in before]


def _is_placeholder(line: str) -> bool:
    """A comment, or a line of nothing but the phrase, with an ellipsis at its beginning or its end."""
    if len(line) > _MAX_LINE_CHARS:
        return False
    said = _COMMENT_END.sub("", _COMMENT.sub("", line)).strip().strip("()[]{}<>").strip()
    opening = _ELLIPSIS.match(said)
    if opening is None and not said.endswith(("...", "\u2026")):
        return False
    words = _ELLIPSIS.sub(" ", said).strip()
    is_set_apart = opening is not None or _COMMENT.match(line) is not None or _BRACKETED.fullmatch(line) is not None
    if not is_set_apart and (_LEFT_OUT.match(words) is None or len(words.split()) > _MAX_BARE_WORDS):
        return False
    return _LEFT_OUT.search(words) is not None


def placeholder_notice(lines: list[str]) -> str:
    return (
        f"{_quoted(lines)} stands for text that was left out, but nothing puts that text back; "
        "if it was meant to stay, write it out"
    )


def refuse_placeholders(lines: list[str]) -> ToolError:
    return ToolError(
        ErrorCode.PLACEHOLDER,
        f"{_quoted(lines)} stands for text that was left out; nothing was written",
        "Write the text out in full.",
        facts={"placeholders": lines[:_MAX_LINES_NAMED]},
    )


def _quoted(lines: list[str]) -> str:
    more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
    return f'"{make_visible(lines[0])}"{more}'
