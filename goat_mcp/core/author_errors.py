"""`E_TOOL`: a tool failed, and its author's own words reach the caller. Source: Goondan `ToolCallResult`; Shelly,
"Handler error".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from goat_mcp.core.errors import ERROR_MESSAGE_LIMIT, ErrorCode, ToolError, cut_middle
from goat_mcp.core.json_values import escaped_surrogates

_DEFAULT_STEP = "Read the message, correct the call, or try another way."
_MAX_NAME_CHARS = 80
_MAX_LINK_CHARS = 500
_LINK_SCHEMES = ("https", "http", "goat")
"""Hosts may turn these into links for their users."""


def handler_failed(
    message: str, suggestion: str = "", *, name: str = "", help_url: str = "", limit: int = ERROR_MESSAGE_LIMIT
) -> ToolError:
    """`E_TOOL` with the handler's own words, at most `limit` characters (`errorMessageLimit`)."""
    return ToolError(
        ErrorCode.TOOL,
        escaped_surrogates(message),
        cut_middle(escaped_surrogates(suggestion), limit) or _DEFAULT_STEP,
        name=escaped_surrogates(name[:_MAX_NAME_CHARS]),
        help_url=help_url if _is_link(help_url) else "",
        message_limit=limit,
    )


def failure_of(problem: BaseException) -> ToolError:
    """What a tool raised, as its caller reads it: its message under the name of its class.

    `suggestion` and `help_url` are those of the exception, if it has them.
    """
    name = type(problem).__name__
    told: Any = problem
    ended = f"the function ended with exit status {problem.code}" if isinstance(problem, SystemExit) else ""
    return handler_failed(
        ended or _text(lambda: str(problem)) or name,
        _text(lambda: told.suggestion),
        name=name,
        help_url=_text(lambda: told.help_url),
    )


def _text(read: Callable[[], object]) -> str:
    """What an exception says of itself: code of the author's, which may fail too."""
    try:
        text = read()
    except Exception:
        return ""
    return str.__str__(text) if isinstance(text, str) else ""


def _is_link(text: str) -> bool:
    scheme, mark, _ = text.partition("://")
    is_whole = len(text) <= _MAX_LINK_CHARS and text.isprintable() and " " not in text
    return bool(mark) and scheme.lower() in _LINK_SCHEMES and is_whole
