"""What the pipeline refused, as the JSON-RPC error that a request other than a tool call is answered with (REL-6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.json_values import escaped_surrogates
from goat_mcp.core.result import ToolResult, error_result
from goat_mcp.server.result_compatibility import sound

RESOURCE_NOT_FOUND = -32002
"""Of the handshake era; 2026-07-28 has retired it for invalid params."""
_THE_CLIENTS = (ErrorCode.TOOL_NOT_FOUND, ErrorCode.TOOL_NOT_IN_CATALOG, ErrorCode.NOT_FOUND, ErrorCode.INPUT)
"""What is wrong with the request, rather than here or at an upstream."""


def check(result: ToolResult) -> ToolResult:
    """The result itself; raises `MCPError` where it is a failure."""
    if not result.is_error:
        return result
    facts: Mapping[str, Any] = result.facts or {}
    described: Mapping[str, Any] = facts.get("error") or {}
    data = {key: value for key, value in facts.items() if key not in ("status", "error")}
    data |= {key: described[key] for key in ("code", "suggestion", "helpUrl") if described.get(key)}
    code = types.INVALID_PARAMS if result.error_code in _THE_CLIENTS else types.INTERNAL_ERROR
    message = escaped_surrogates(described.get("message") or result.text)
    raise MCPError(code=code, message=message, data=sound(data) or None)


def refusal(error: ToolError) -> MCPError:
    """The error that stands for a refusal outside the pipeline."""
    try:
        check(error_result(error))
    except MCPError as refused:
        return refused
    raise AssertionError("an error result is a failure")


def relayed_error(error: UpstreamError) -> MCPError:
    """An upstream's own protocol error, as its client gets it."""
    return MCPError(code=error.code, message=escaped_surrogates(error.message), data=sound(error.data))


def no_such_resource(uri: str, version: str) -> MCPError:
    is_modern = version in MODERN_PROTOCOL_VERSIONS
    return MCPError(
        code=types.INVALID_PARAMS if is_modern else RESOURCE_NOT_FOUND,
        message=f"resource not found: {escaped_surrogates(uri[:200])}",
        data={"uri": escaped_surrogates(uri)},
    )
