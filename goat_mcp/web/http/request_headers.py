"""Headers a caller may send: what they are made of, and which belong to the connection and are ours (RFC 9110)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from goat_mcp.core.errors import ErrorCode, ToolError

_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?\Z")
_OURS = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
_OF_PROXIES = "proxy-"


def checked_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """A copy that can be sent as it is. Raises `ToolError(INPUT)`, which shows no value: keys travel in headers."""
    for name, value in headers.items():
        if not _NAME.match(name):
            raise ToolError(ErrorCode.INPUT, f"{name[:60]!r} is no name of a header", "Leave it out.")
        if name.lower() in _OURS or name.lower().startswith(_OF_PROXIES):
            raise ToolError(
                ErrorCode.INPUT, f"the header {name} is not for a caller to set", "Leave it out: it is set as needed."
            )
        if not _VALUE.match(value):
            raise ToolError(
                ErrorCode.INPUT,
                f"the value of the header {name} holds characters that none may",
                "Send printable ASCII on one line, without blanks around it.",
            )
    return dict(headers)
