"""From an upstream's raw result to ours, losing nothing but what belongs to the hop (REL-1, REL-2, REL-4)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import Block, ToolResult, text_block
from goat_mcp.upstreams.envelope import strip_result

_CARRIES: dict[Any, tuple[tuple[str, type], ...]] = {
    "text": (("text", str),),
    "image": (("data", str), ("mimeType", str)),
    "audio": (("data", str), ("mimeType", str)),
    "resource": (("resource", dict),),
    "resource_link": (("uri", str), ("name", str)),
}
"""Members without which a block of that type is unreadable, and would cost the client the whole result."""
_NAMED_MEMBERS = frozenset({"content", "isError", "structuredContent", "_meta"})


@dataclass(frozen=True)
class Relayed:
    """A result for the client; `unknown_blocks` counts content we could only pass on as its JSON."""

    result: ToolResult
    unknown_blocks: int


def _is_known(block: Any) -> bool:
    """Whether clients can read the block: of a known type, with the text or data that its type is about."""
    if not isinstance(block, dict):
        return False
    block = cast("Block", block)
    kind = block.get("type")
    carried = _CARRIES.get(kind) if isinstance(kind, str) else None
    return carried is not None and all(isinstance(block.get(name), kind) for name, kind in carried)


def relayed_result(server: str, raw: Mapping[str, Any]) -> Relayed:
    """Raises `ToolError(UPSTREAM)` for an answer that is no tool result."""
    kind = raw.get("resultType", "complete")
    if kind != "complete":
        raise ToolError(
            ErrorCode.UPSTREAM,
            f"upstream {server} answered with {str(kind)[:40]!r}, which goat-mcp does not relay",
            "Use another tool.",
        )
    result = strip_result(raw)
    content = result.get("content", [])
    if not isinstance(content, list):
        raise ToolError(ErrorCode.UPSTREAM, f"upstream {server} answered with content that is no list of blocks")
    if "content" not in result and "structuredContent" not in result:
        raise ToolError(ErrorCode.UPSTREAM, f"upstream {server} answered without content")
    listed = cast("list[Any]", content)
    blocks: list[Block] = []
    unknown = 0
    for block in listed:
        if _is_known(block):
            blocks.append(block)
        else:
            blocks.append(text_block(json.dumps(block)))
            unknown += 1
    failed = result.get("isError") not in (None, False)  # "yes" is meant as a failure
    other = {key: value for key, value in result.items() if key not in _NAMED_MEMBERS}
    if result.get("structuredContent", "") is None:
        # A value of its own, which `structured` cannot tell from none at all.
        other["structuredContent"] = None
    return Relayed(
        ToolResult(
            content=tuple(blocks),
            is_error=failed,
            structured=result.get("structuredContent"),
            meta=result.get("_meta", {}),
            other=other,
            error_code=str(ErrorCode.UPSTREAM) if failed else None,
        ),
        unknown,
    )
