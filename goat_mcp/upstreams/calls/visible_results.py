"""What hides or acts in an upstream's results, made visible where its entry says `sanitize: true` (R-UP-7).

Data, media types and URIs stay: they are not read as text, and would be of no use changed. Output schemas are held
against results as they came.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import Block, ToolResult
from goat_mcp.files.documents.visible_text import make_json_visible

_OPAQUE = frozenset({"_meta", "blob", "data", "icons", "mimeType", "role", "type", "uri"})
_NONE: frozenset[str] = frozenset()


class VisibleResults:
    """Of one upstream. `escaped` counts the results and errors in which there was something to show."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self.escaped = 0

    def of_call(self, result: ToolResult) -> ToolResult:
        """Raises `ToolError(UPSTREAM)` for one that is nested beyond what can be looked through."""
        blocks = self._visible(list(result.content), _OPAQUE)
        structured = self._visible(result.structured, _NONE)
        if blocks is None and structured is None:
            return result
        self.escaped += 1
        content = tuple(cast("list[Block]", blocks[0])) if blocks else result.content
        return replace(result, content=content, structured=structured[0] if structured else result.structured)

    def of_request(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """As `of_call`, for a resource, a prompt or completions."""
        found = self._visible(result, _OPAQUE)
        if found is None:
            return result
        self.escaped += 1
        return cast("dict[str, Any]", found[0])

    def of_error(self, error: UpstreamError) -> UpstreamError:
        """An error of the upstream's own, with its code."""
        found = self._visible([error.message, error.data], _NONE)
        if found is None:
            return error
        self.escaped += 1
        message, data = cast("list[Any]", found[0])
        return UpstreamError(error.code, message, data)

    def _visible(self, value: Any, opaque: frozenset[str]) -> tuple[Any] | None:
        """The value with its text visible; None where it is so already."""
        try:
            made = make_json_visible(value, opaque)
        except RecursionError:
            raise ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {self._upstream} sent a result that is nested too deeply to make its text visible",
                "Call it another way; the operator can relay such results with sanitize: false.",
                facts={"upstream": self._upstream},
            ) from None
        return None if made is value else (made,)
