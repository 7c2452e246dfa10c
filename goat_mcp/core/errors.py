"""Errors a caller can act on: a stable code, what is the case, and the next step.

Everything else that is raised is a bug; the pipeline turns it into `E_INTERNAL`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

ERROR_MESSAGE_LIMIT = 1000
"""Characters of an error's message; longer ones are cut in the middle. Source: Goondan `errorMessageLimit`."""


class ErrorCode(StrEnum):
    """Stable names of what can go wrong. The value is what clients see; each has a help page `goat://errors/CODE`."""

    INPUT = "E_INPUT"
    TOOL_NOT_FOUND = "E_TOOL_NOT_FOUND"
    TOOL_NOT_IN_CATALOG = "E_TOOL_NOT_IN_CATALOG"
    PERMISSION = "E_PERMISSION"
    APPROVAL_PENDING = "E_APPROVAL_PENDING"
    HOOK_DENIED = "E_HOOK_DENIED"
    PLAN_MODE = "E_PLAN_MODE"
    CANCELLED = "E_CANCELLED"
    TIMEOUT = "E_TIMEOUT"
    BUSY = "E_BUSY"
    INTERNAL = "E_INTERNAL"
    TOOL = "E_TOOL"
    AUDIT = "E_AUDIT"

    NO_WORKSPACE = "E_NO_WORKSPACE"
    PATH_RELATIVE = "E_PATH_RELATIVE"
    PATH_OUTSIDE = "E_PATH_OUTSIDE"
    NOT_FOUND = "E_NOT_FOUND"
    DIRECTORY = "E_DIRECTORY"
    NOT_A_DIRECTORY = "E_NOT_A_DIRECTORY"
    NOT_REGULAR = "E_NOT_REGULAR"
    TOO_LARGE = "E_TOO_LARGE"
    HARD_LINKED = "E_HARD_LINKED"
    IO = "E_IO"

    BINARY = "E_BINARY"
    ENCODING = "E_ENCODING"
    NOT_READ = "E_NOT_READ"
    STALE = "E_STALE"
    NO_CHANGE = "E_NO_CHANGE"
    NO_MATCH = "E_NO_MATCH"
    AMBIGUOUS = "E_AMBIGUOUS"
    PLACEHOLDER = "E_PLACEHOLDER"
    PATTERN = "E_PATTERN"
    NOTEBOOK = "E_NOTEBOOK"
    CELL = "E_CELL"

    EXIT = "E_EXIT"
    BLOCKED = "E_BLOCKED"
    SANDBOX = "E_SANDBOX"
    TASK_UNKNOWN = "E_TASK_UNKNOWN"

    UPSTREAM = "E_UPSTREAM"
    UPSTREAM_DOWN = "E_UPSTREAM_DOWN"
    AUTH = "E_AUTH"
    QUARANTINED = "E_QUARANTINED"
    CAPABILITY = "E_CAPABILITY"
    OUTCOME_UNKNOWN = "E_OUTCOME_UNKNOWN"

    ADDRESS = "E_ADDRESS"
    NETWORK = "E_NETWORK"
    RATE = "E_RATE"
    MODEL = "E_MODEL"
    DELIVERY = "E_DELIVERY"
    NOT_CONFIGURED = "E_NOT_CONFIGURED"
    CONFIG = "E_CONFIG"
    SETTING = "E_SETTING"

    @property
    def error_name(self) -> str:
        """`E_NOT_FOUND` -> `NotFound`: the `name` member of the error object."""
        return "".join(word.capitalize() for word in self.value.removeprefix("E_").split("_"))

    @property
    def help_url(self) -> str:
        return f"goat://errors/{self.value}"


class ToolError(Exception):
    """A call failed in a way its caller can act on.

    Args:
        code: the stable name of the failure.
        message: what is the case, with the value that caused it.
        suggestion: one step the model (or its user) can take next; empty if there is none.
        facts: machine-readable facts, beside code, message and suggestion.
        output: what the caller should still see, e.g. the output of a command that failed. It is
            not part of the message and not cut with it.
        name: what the failure is called, if that is not the code's name: a handler's own exception.
        help_url: where to read more, if that is not the code's page.
        message_limit: characters of the message that are sent.
        interrupts: a person (or a policy) refused and wants nothing else started: the calls
            that came together with this one are not run. Source: Goat, "deny -> error + maybe interrupt".
    """

    def __init__(
        self,
        code: ErrorCode,
        message: str,
        suggestion: str = "",
        *,
        facts: Mapping[str, Any] | None = None,
        output: str = "",
        interrupts: bool = False,
        name: str = "",
        help_url: str = "",
        message_limit: int = ERROR_MESSAGE_LIMIT,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.suggestion = suggestion
        self.facts = facts
        self.output = output
        self.interrupts = interrupts
        self.name = name or code.error_name
        self.help_url = help_url or code.help_url
        self.message_limit = message_limit


class UpstreamError(Exception):
    """A JSON-RPC error that an upstream answered with: relayed as it is, with code, message and data (REL-6)."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


def cut_middle(text: str, max_chars: int) -> str:
    """Cut `text` to at most `max_chars`, keeping its head and tail around a mark that says how much is gone."""
    if len(text) <= max_chars:
        return text
    mark = f" ...[{len(text) - max_chars} characters cut]... "
    keep = max(max_chars - len(mark), 2)
    head = keep * 2 // 3
    return text[:head] + mark + text[len(text) - (keep - head) :]
