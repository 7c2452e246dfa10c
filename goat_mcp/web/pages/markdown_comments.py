"""Markdown that a server sent, without the HTML comments that nobody sees (R-NET-9)."""

from __future__ import annotations

import re

_COMMENT, _COMMENT_END = "<!--", "-->"
_COMMENT_OR_FENCE = re.compile(r"<!--|^ {0,3}(`{3,})(?=[^`\n]*$)|^ {0,3}(~{3,})", re.MULTILINE)


def without_comments(markdown: str) -> str:
    """The text less its comments; what is in a fenced code block is seen and stays. Takes time as its length does.

    A fence ends as CommonMark has it: a line of the same character, at least as often, and nothing else.
    """
    parts: list[str] = []
    at = 0
    while (found := _COMMENT_OR_FENCE.search(markdown, at)) is not None:
        if found[0] == _COMMENT:
            parts.append(markdown[at : found.start()])
            end = markdown.find(_COMMENT_END, found.end())
            at = len(markdown) if end < 0 else end + len(_COMMENT_END)
        else:
            fence = found[1] or found[2]
            closing = re.compile(rf"^ {{0,3}}{fence[0]}{{{len(fence)},}}[ \t]*$", re.MULTILINE)
            end_line = closing.search(markdown, found.end())
            end = len(markdown) if end_line is None else end_line.end()
            parts.append(markdown[at:end])
            at = end
    parts.append(markdown[at:])
    return "".join(parts)
