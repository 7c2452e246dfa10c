"""A handler that failed, as an error its caller can act on: `E_TOOL`, its own words, at most `errorMessageLimit`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from goat_mcp.core.errors import ERROR_MESSAGE_LIMIT, ErrorCode, ToolError, cut_middle
from goat_mcp.core.surrogates import escaped_surrogates

_DEFAULT_STEP = "Read the message, correct the call, or try another way."
_MAX_NAME_CHARS = 80
_MAX_LINK_CHARS = 500
_LINK_SCHEMES = ("https", "http", "goat")
"""Of what a host may make a link that its user clicks."""


def handler_failed(
    message: str, suggestion: str = "", *, name: str = "", help_url: str = "", limit: int = ERROR_MESSAGE_LIMIT
) -> ToolError:
    """What the caller is told."""
    return ToolError(
        ErrorCode.TOOL,
        escaped_surrogates(message),
        cut_middle(escaped_surrogates(suggestion), limit) or _DEFAULT_STEP,
        name=escaped_surrogates(name[:_MAX_NAME_CHARS]),
        help_url=help_url if _is_link(help_url) else "",
        message_limit=limit,
    )


def told_failure(error: Mapping[str, Any], limit: int) -> ToolError:
    """From an error object of another process: `message`, and where it has them `suggestion`, `name`, `helpUrl`."""

    def text(key: str) -> str:
        value = error.get(key)
        return value if isinstance(value, str) else ""

    message = text("message") or text("name") or "the handler failed and said nothing"
    return handler_failed(message, text("suggestion"), name=text("name"), help_url=text("helpUrl"), limit=limit)


def _is_link(text: str) -> bool:
    scheme, mark, _ = text.partition("://")
    is_whole = len(text) <= _MAX_LINK_CHARS and text.isprintable() and " " not in text
    return bool(mark) and scheme.lower() in _LINK_SCHEMES and is_whole


def timed_out(tool: str, timeout_s: float) -> ToolError:
    return ToolError(
        ErrorCode.TIMEOUT,
        f"{tool} did not answer within {timeout_s:.3g} s and was ended",
        "Call it with less to do, or raise timeoutMs in its manifest (at most 45000).",
        facts={"timed_out": True},
    )
