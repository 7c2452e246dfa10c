"""What a call returns: content blocks, machine-readable facts, and whether it failed.

Blocks are wire dictionaries, so that an upstream's result passes through unchanged.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from goat_mcp.core.errors import ToolError, cut_middle

Block = dict[str, Any]

FACTS_META_KEY = "goat-mcp/facts"
"""`_meta` key that carries facts which say less than the text (contract: tools.md, "Results")."""


def text_block(text: str) -> Block:
    return {"type": "text", "text": text}


def image_block(data: bytes, mime_type: str) -> Block:
    return {"type": "image", "data": base64.b64encode(data).decode("ascii"), "mimeType": mime_type}


@dataclass(frozen=True)
class UpstreamTask:
    """A task of an upstream (SEP-2663): whose, of which tool, and its own id, which clients never see.

    `launch` is the fingerprint of its entry's launch: another server under the same name is asked nothing about it.
    `created` are the members that it came with, for the first answer about it.
    """

    source: str
    tool: str
    task_id: str
    launch: str
    created: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class ToolResult:
    """The outcome of one call.

    `facts` are the machine-readable side of the text. They travel as `structuredContent` only when
    `facts_replace_text` (they say everything the text says), because a widely used host shows its
    model the structured content *instead of* the text; otherwise under `_meta[FACTS_META_KEY]`.
    `other` holds members of a relayed result that this class has no name for. `task_id`: the call goes on as this
    background task, and this result only says so; that of the call itself is in `TaskOutcome.result`. `upstream_task`
    is the same for a task of an upstream, which its client reads there.
    `is_relayed`: it is the result of another call, has been limited as that, and is passed on whole.
    """

    content: tuple[Block, ...] = ()
    is_error: bool = False
    facts: Mapping[str, Any] | None = None
    facts_replace_text: bool = False
    structured: Any = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    other: Mapping[str, Any] = field(default_factory=dict[str, Any])
    error_code: str | None = None
    task_id: str | None = None
    upstream_task: UpstreamTask | None = None
    is_relayed: bool = False

    @property
    def text(self) -> str:
        """All text blocks, joined by line ends."""
        return "\n".join(block["text"] for block in self.content if block.get("type") == "text")

    @property
    def chars(self) -> int:
        """How long its texts and data are: what a model has to take in, or nearly so."""
        chars = 0
        for block in self.content:
            for part in (block.get("text"), block.get("data")):
                if isinstance(part, str):
                    chars += len(part)
        return chars

    def wire(self, *, structured_always: bool = False) -> dict[str, Any]:
        """The result as a `tools/call` answer for either protocol era."""
        meta = dict(self.meta)
        structured = self.structured
        if self.facts is not None:
            if self.facts_replace_text or structured_always:
                structured = dict(self.facts)
            else:
                meta[FACTS_META_KEY] = dict(self.facts)
        answer: dict[str, Any] = {**self.other, "content": list(self.content), "isError": self.is_error}
        if structured is not None:
            answer["structuredContent"] = structured
        if meta:
            answer["_meta"] = meta
        answer["resultType"] = "complete"
        return answer


def text_result(
    text: str,
    *,
    facts: Mapping[str, Any] | None = None,
    notices: Sequence[str] = (),
    replace_text: bool = False,
    task_id: str | None = None,
) -> ToolResult:
    """A successful result of one text block. Notices come last, each on a line in square brackets."""
    content = (text_block(with_notices(text, notices)),)
    return ToolResult(content=content, facts=facts, facts_replace_text=replace_text, task_id=task_id)


def with_notices(text: str, notices: Sequence[str]) -> str:
    lines = [f"[{notice}]" for notice in notices]
    if text and lines:
        return text.rstrip("\n") + "\n" + "\n".join(lines)
    return text or "\n".join(lines)


def error_result(error: ToolError) -> ToolResult:
    """A failed call as a result: message, suggestion and `[code]` on a line each, and the same as an object.

    Where the error has output of its own, the text says more than the object, so the object goes to `_meta`.
    Source: Goondan `ToolCallResult`.
    """
    message = cut_middle(error.message, error.message_limit)
    lines = [part for part in (error.output, message, error.suggestion, f"[{error.code}]") if part]
    described: dict[str, Any] = {
        "code": str(error.code),
        "name": error.name,
        "message": message,
        "suggestion": error.suggestion,
        "helpUrl": error.help_url,
    }
    facts: dict[str, Any] = {"status": "error", "error": described}
    if error.interrupts:
        facts["interrupt"] = True
    if error.facts:
        facts.update(error.facts)
    return ToolResult(
        content=(text_block("\n".join(lines)),),
        is_error=True,
        facts=facts,
        facts_replace_text=not error.output,
        error_code=str(error.code),
    )
