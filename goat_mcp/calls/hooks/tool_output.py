"""A tool's result as hooks see it, and what they put in its place.

It is the MCP result, with the members that scripts written for Claude Code look for beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.core.spec import ToolSpec

SUPPRESSED = "[output suppressed by a hook]"


def tool_response(spec: ToolSpec, arguments: Mapping[str, Any], result: ToolResult) -> dict[str, Any]:
    """`tool_response` of PostToolUse: `content` and `structuredContent`; facts of our own tools under `facts`."""
    response: dict[str, Any] = {"content": list(result.content), "isError": result.is_error}
    if result.structured is not None:
        response["structuredContent"] = result.structured
    if result.facts is not None:
        response["facts"] = dict(result.facts)
    if spec.rule_name == "Bash":
        response |= {"stdout": result.text, "stderr": "", "interrupted": False, "isImage": False}
    elif "file_path" in arguments:
        response |= {"filePath": arguments["file_path"], "success": not result.is_error}
    return response


def with_output(result: ToolResult, output: Any) -> ToolResult | None:
    """The result with what a hook gave in place of its output; None where that is no output.

    Text, a list of content blocks, an MCP result or Bash's `stdout` and `stderr`. What else the result said goes too:
    a hook that takes a secret out of the text has not left it in the facts.
    """
    if isinstance(output, str):
        return _only(result, (text_block(output),))
    if isinstance(output, list):
        blocks = cast("list[Any]", output)
        return _only(result, tuple(blocks)) if all(map(_is_block, blocks)) else None
    if not isinstance(output, dict):
        return None
    members = cast("dict[str, Any]", output)
    if "content" in members:
        replaced = with_output(result, members["content"])
        return replaced and replace(replaced, structured=members.get("structuredContent"))
    streams = [members.get(name, "") for name in ("stdout", "stderr")]
    if ("stdout" in members or "stderr" in members) and all(isinstance(text, str) for text in streams):
        return _only(result, (text_block("\n".join(text for text in streams if text)),))
    return None


def with_text(result: ToolResult, text: str) -> ToolResult:
    """The result with something said beside it."""
    return replace(result, content=(*result.content, text_block(text)))


def _only(result: ToolResult, content: tuple[dict[str, Any], ...]) -> ToolResult:
    return ToolResult(content=content, is_error=result.is_error, error_code=result.error_code)


def _is_block(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    block = cast("dict[str, Any]", value)
    kind = block.get("type")
    return isinstance(kind, str) and (kind != "text" or isinstance(block.get("text"), str))
