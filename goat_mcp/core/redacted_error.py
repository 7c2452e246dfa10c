"""An error as it may be told to a client: without secrets in what we word, and with what the user's own files hold."""

from __future__ import annotations

from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.redaction import Redactor

_QUOTES_FILES = frozenset(
    {
        ErrorCode.NO_MATCH,
        ErrorCode.AMBIGUOUS,
        ErrorCode.PLACEHOLDER,
        ErrorCode.NO_CHANGE,
        ErrorCode.STALE,
        ErrorCode.NOTEBOOK,
        ErrorCode.CELL,
        ErrorCode.PATTERN,
        ErrorCode.EXIT,
    }
)
"""Their messages quote what a Read of the same file shows; an edit that is mended by them needs it as it is."""


def redacted_error(error: ToolError, redactor: Redactor) -> ToolError:
    """The error itself where it holds no secret. `output`, what a tool gave until it failed, is not ours to change."""
    only_values = error.code in _QUOTES_FILES
    clean = redactor.values if only_values else redactor.text
    message, suggestion = clean(error.message), clean(error.suggestion)
    facts = None if error.facts is None else redactor.tree(error.facts, by_name=False, only_values=only_values)
    if (message, suggestion) == (error.message, error.suggestion) and facts == error.facts:
        return error
    return ToolError(
        error.code,
        message,
        suggestion,
        facts=facts,
        output=error.output,
        interrupts=error.interrupts,
        name=error.name,
        help_url=error.help_url,
        message_limit=error.message_limit,
    ).with_traceback(error.__traceback__)


def redacted_upstream_error(error: UpstreamError, redactor: Redactor) -> UpstreamError:
    """What an upstream answered, as it is but for values that only we gave it: its own variables and headers."""
    message, data = redactor.values(error.message), redactor.tree(error.data, only_values=True)
    return error if (message, data) == (error.message, error.data) else UpstreamError(error.code, message, data)
