"""Reading a resource, getting a prompt and completing an argument, each as a tool that the pipeline can call (AGG-1).

They are on no list. Their results travel as content blocks, so hooks see them like those of a call; `contents_of`,
`messages_of` and `completion_of` turn what hooks left into the answer for the client.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from goat_mcp.catalog.offerings import OfferedPrompt
from goat_mcp.core.context import ToolContext
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX
from goat_mcp.core.result import Block, ToolResult, text_block
from goat_mcp.core.side_effect import Hints, Risk, SideEffect
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access, OwnTool

READ_TOOL = "ReadMcpResource"
"""Rules about this tool are about `resources/read` of upstreams as well."""
_READ = "resources/read"
_HINTS = Hints(read_only=True, destructive=False, idempotent=True, open_world=True)
_UNBOUNDED = 1 << 40
"""A resource or a prompt is not cut: who asked for it is a program, and the link bounds what comes."""
_ROLES = "goat-mcp/roles"
Arguments = Mapping[str, Any]
Run = Callable[[Arguments, ToolContext], Awaitable[ToolResult]]
Check = Callable[[Arguments], None]


@dataclass(frozen=True)
class ResourceTool(OwnTool):
    """One request that is no tool call, as the pipeline sees it. `check` refuses arguments, which hooks may rewrite."""

    spec: ToolSpec
    check: Check
    run: Run

    def validate(self, arguments: Arguments) -> Arguments:
        self.check(arguments)
        return arguments

    def access(self, input: Arguments) -> Access:
        """Nothing: the upstream's own cap bounds them."""
        return Access()

    async def execute(self, input: Arguments, ctx: ToolContext) -> ToolResult:
        return await self.run(input, ctx)


def reading_spec(server: str) -> ToolSpec:
    """Stands for all reads of this server's resources."""
    return _spec(READ_TOOL, f"{UPSTREAM_PREFIX}{server}{SEPARATOR}{_READ}", _READ)


def prompt_spec(prompt: OfferedPrompt) -> ToolSpec:
    return _spec(prompt.name, prompt.rule_name, str(prompt.entry.get("title") or prompt.name))


def _spec(name: str, rule_name: str, title: str) -> ToolSpec:
    return ToolSpec(
        name=name,
        title=title,
        description="",
        input_schema={"type": "object"},
        side_effect=SideEffect.READ_ONLY,
        toolset="upstream",
        risk=Risk.LOW,
        hints=_HINTS,
        max_result_chars=_UNBOUNDED,
        canonical_name=rule_name,
    )


def reading_result(answer: Mapping[str, Any]) -> ToolResult:
    contents = cast("Sequence[Mapping[str, Any]]", answer["contents"])
    return _result(({"type": "resource", "resource": dict(content)} for content in contents), answer, "contents")


def contents_of(result: ToolResult, uri: str) -> dict[str, Any]:
    """The answer to `resources/read`; a text that a hook put there is a content under the same URI."""
    contents = [
        block["resource"] if block.get("type") == "resource" else {"uri": uri, "text": str(block.get("text", ""))}
        for block in result.content
    ]
    return _answer(result, {"contents": contents})


def prompt_result(answer: Mapping[str, Any]) -> ToolResult:
    messages = cast("Sequence[Mapping[str, Any]]", answer["messages"])
    with_roles = {**answer, _ROLES: [message.get("role", "user") for message in messages]}
    return _result((_block(message.get("content")) for message in messages), with_roles, "messages")


def messages_of(result: ToolResult) -> dict[str, Any]:
    """The answer to `prompts/get`; what a hook has added is said by the user."""
    roles = [*result.other.get(_ROLES, ())]
    roles += ["user"] * (len(result.content) - len(roles))
    messages = [{"role": role, "content": block} for role, block in zip(roles, result.content, strict=False)]
    return _answer(result, {"messages": messages})


def completion_result(answer: Mapping[str, Any] | None) -> ToolResult:
    """None is the answer of a server that completes nothing (AGG-2)."""
    return ToolResult(structured=answer or {"completion": {"values": []}})


def completion_of(result: ToolResult) -> dict[str, Any]:
    """The answer to `completion/complete`; nothing, if a hook took it away."""
    answer = result.structured
    return dict(cast("Mapping[str, Any]", answer)) if isinstance(answer, Mapping) else {"completion": {"values": []}}


def _block(content: Any) -> Block:
    """A message's content; what is no object at all as its JSON (REL-4)."""
    return cast("Block", content) if isinstance(content, dict) else text_block(json.dumps(content))


def _result(blocks: Any, answer: Mapping[str, Any], member: str) -> ToolResult:
    other = {key: value for key, value in answer.items() if key not in (member, "_meta")}
    return ToolResult(content=tuple(blocks), meta=answer.get("_meta", {}), other=other)


def _answer(result: ToolResult, listed: Mapping[str, Any]) -> dict[str, Any]:
    answer = {key: value for key, value in (*result.other.items(), *listed.items()) if key != _ROLES}
    if result.meta:
        answer["_meta"] = dict(result.meta)
    return answer
