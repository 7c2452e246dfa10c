"""Results small enough to send: a text that is too long goes to a file that the caller can read (SPL-1, SPL-2).

Of the text, head and tail are shown. Structured content is sent whole or not at all. In results of declared tools it
says what the text says, and is cut with it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.json_values import dumped_in_steps, is_longer
from goat_mcp.core.resources import OUTPUT_URI
from goat_mcp.core.result import Block, ToolResult, error_result, text_block
from goat_mcp.core.spec import ToolSpec
from goat_mcp.state.spill import SpillFiles

STRUCTURED_SHARE = 10
"""How many times `output.max_chars` structured content may have: programs read it, and it cannot be shown in part."""
_HEAD_SHARE = 0.4
_DECLARED = frozenset({"manifests", "goa", "base"})
"""Toolsets whose tools give back one value, as text and as an object."""


@dataclass(frozen=True)
class ResultLimits:
    """The bounds of one call's result. Blocking where something has to be written."""

    spec: ToolSpec
    max_chars: int
    spill: SpillFiles

    def exceeded_by(self, result: ToolResult) -> bool:
        return self._is_text_too_long(result) or self._is_structured_too_large(result)

    def of(self, result: ToolResult) -> ToolResult:
        """The result within its bounds. `isError`, pictures and links stay as they are."""
        is_cut = self._is_text_too_long(result)
        is_same_said_twice = is_cut and result.structured is not None and self.spec.toolset in _DECLARED
        if is_same_said_twice and self.spec.output_schema is None:
            # Many hosts show their model the object and not the text.
            return self._cut(result, is_structured_cut=True)
        if is_same_said_twice or self._is_structured_too_large(result):
            result = self._without_structured(result)
        return self._cut(result) if self._is_text_too_long(result) else result

    def _is_text_too_long(self, result: ToolResult) -> bool:
        return sum(map(len, map(_text_of, result.content))) > self.max_chars

    def _cut(self, result: ToolResult, *, is_structured_cut: bool = False) -> ToolResult:
        whole = "\n".join(text for block in result.content if (text := _text_of(block)))
        path, where = self._kept(whole, ".txt")
        head = int(self.max_chars * _HEAD_SHARE)
        tail = self.max_chars - head
        shown = (
            f"{whole[:head]}\n[... {len(whole) - self.max_chars} of {len(whole)} characters cut; {where} ...]\n"
            f"{whole[len(whole) - tail :]}"
        )
        others = (block for block in result.content if not _text_of(block) and block.get("type") != "text")
        content = (text_block(shown), *others, *self._link(path, len(whole)))
        if not is_structured_cut:
            return replace(result, content=content)
        return replace(result, content=content, structured={"truncated": True, **_size(len(whole), path)})

    def _is_structured_too_large(self, result: ToolResult) -> bool:
        return result.structured is not None and is_longer(result.structured, self.max_chars * STRUCTURED_SHARE)

    def _without_structured(self, result: ToolResult) -> ToolResult:
        """A client that was promised the object gets an error in place of it, others the text alone (SPL-2)."""
        text = dumped_in_steps(result.structured)
        path, where = self._kept(text, ".json")
        said = f"the structured content of {self.spec.name} has {len(text)} characters, too many to send; {where}"
        if self.spec.output_schema is None or result.is_error:
            return replace(result, structured=None, content=(*result.content, text_block(f"[{said}]")))
        error = ToolError(ErrorCode.TOO_LARGE, said, "Ask for less: a page, a filter.", facts=_size(len(text), path))
        failed = error_result(error)
        return replace(failed, content=(*failed.content, *self._link(path, len(text))))

    def _kept(self, text: str, suffix: str) -> tuple[Path | None, str]:
        """Where the whole text is, as a path and in words. A full disk costs nobody the result."""
        try:
            path = self.spill.write(self.spec.rule_name.lower(), text, suffix)
        except OSError as problem:
            return None, f"the whole could not be kept: {problem.strerror or problem}"
        return path, f"the whole is in {path}, which Read and Grep can open"

    def _link(self, path: Path | None, size: int) -> tuple[Block, ...]:
        """The file as a resource, for clients that read those. Our own tools' callers have Read."""
        if path is None or self.spec.toolset != "upstream":
            return ()
        kind = "application/json" if path.suffix == ".json" else "text/plain"
        link = {"type": "resource_link", "uri": f"{OUTPUT_URI}/{path.name}", "name": path.name, "mimeType": kind}
        return ({**link, "description": f"The whole of it, {size} characters"},)


def _size(characters: int, path: Path | None) -> dict[str, Any]:
    return {"characters": characters, **({"path": str(path)} if path is not None else {})}


def _text_of(block: Block) -> str:
    """The text of a text block, and of a resource that is embedded as text."""
    inside: Any = block
    if block.get("type") == "resource":
        inside = block.get("resource")
    elif block.get("type") != "text":
        return ""
    text: Any = cast("Mapping[str, Any]", inside).get("text") if isinstance(inside, Mapping) else None
    return text if isinstance(text, str) else ""
