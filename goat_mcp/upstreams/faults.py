"""What can go wrong between us and an upstream, as opposed to what an upstream itself answers.

A fault travels through the SDK's dispatcher as the `data` of a JSON-RPC error; only the link that made it
can read it back, so an upstream cannot forge one.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.upstreams.status import ReasonCode

_MARK = "goat-mcp/fault"


class FaultKind(StrEnum):
    """How far the request got. Only unreachable, session_lost and auth_required prove that it had no effect (LIF-6)."""

    UNREACHABLE = "unreachable"
    SESSION_LOST = "session_lost"
    AUTH_REQUIRED = "auth_required"
    HTTP_STATUS = "http_status"
    LOST = "lost"
    MALFORMED = "malformed"


@dataclass(frozen=True)
class Fault:
    """One failure of the link. `detail` is for people."""

    kind: FaultKind
    detail: str
    wanted_scopes: str | None = None
    """Where a person's login would fix it: what that is to ask for beyond the usual. Otherwise None."""


class TransportFault(Exception):
    """A request that failed on the link rather than at the upstream."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.detail)
        self.fault = fault


class StartFailure(Exception):
    """An upstream could not be started or connected to. `reason_code` is stable and shown in status."""

    def __init__(self, reason_code: ReasonCode, message: str, wanted_scopes: str | None = None) -> None:
        """`wanted_scopes` are as in `Fault`."""
        super().__init__(message)
        self.reason_code = reason_code
        self.message = message
        self.wanted_scopes = wanted_scopes


class NotShared(Exception):
    """An upstream runs for this session alone though its entry shares it. The text says why, for people."""


class HandshakeRefused(StartFailure):
    """It answered, and said no: a word of its own, unlike a fault on the way."""


def start_failure_in(error: BaseException) -> StartFailure | None:
    """The start failure in an exception, which task groups wrap."""
    if isinstance(error, StartFailure):
        return error
    if isinstance(error, BaseExceptionGroup):
        inner = cast("BaseExceptionGroup[BaseException]", error).exceptions
        return next((found for each in inner if (found := start_failure_in(each)) is not None), None)
    return None


class LoginRequired(ToolError):
    """An upstream did nothing, for it wants a login that a person can make now, with these scopes beside the usual."""

    def __init__(self, message: str, suggestion: str, *, facts: Mapping[str, Any], scopes: str) -> None:
        super().__init__(ErrorCode.AUTH, message, suggestion, facts=facts)
        self.scopes = scopes
        self.at_s = time.monotonic()


@dataclass
class FaultMarks:
    """Marks faults of one link, and recognises its own marks."""

    _open: dict[str, Fault] = field(default_factory=dict[str, Fault])

    def mark(self, fault: Fault) -> dict[str, Any]:
        """The error `data` that stands for `fault`."""
        token = secrets.token_hex(16)
        self._open[token] = fault
        if len(self._open) > 1000:
            del self._open[next(iter(self._open))]
        return {_MARK: token}

    def read(self, data: Any) -> Fault | None:
        """The fault behind an error's `data`; None for what an upstream sent."""
        if not isinstance(data, dict):
            return None
        token = cast("dict[str, Any]", data).get(_MARK)
        return self._open.pop(token, None) if isinstance(token, str) else None
