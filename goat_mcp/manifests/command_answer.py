"""What a command came to, as JSON with its two outputs apart: the answer of the shipped tools that run commands."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any

from goat_mcp.core.errors import ToolError
from goat_mcp.core.result import ToolResult, text_block
from goat_mcp.processes.output_capture import CreateFile, OutputPart, SeparateStreams

MAX_STDOUT_CHARS = 20_000
MAX_STDERR_CHARS = 6_000
MAX_FAILED_STDOUT_CHARS = 5_000
MAX_FAILED_STDERR_CHARS = 4_000
"""Together about what Bash shows of a command that failed."""


class CommandAnswer:
    """One call's. Its outputs are read when the command has ended, or goes on without its caller."""

    def __init__(self, create_file: CreateFile) -> None:
        self._create_file = create_file
        self._streams = SeparateStreams(create_file)

    def fresh_streams(self) -> SeparateStreams:
        """For a start of the command, which may be the second one."""
        self._streams = SeparateStreams(self._create_file)
        return self._streams

    async def of(self, run: Awaitable[ToolResult], notices: Sequence[str] = ()) -> ToolResult:
        """Bash's result in JSON. Raises its `ToolError`, whose output is the same JSON."""
        try:
            result = await run
        except ToolError as failed:
            if failed.facts is None or "exit_code" not in failed.facts:
                raise  # nothing of it ran
            value = self.value(failed.facts, notices, failed=True)
            raise ToolError(
                failed.code, failed.message, failed.suggestion, facts=value, output=as_json(value)
            ) from failed
        value = self.value(result.facts or {}, notices)
        return ToolResult(content=(text_block(as_json(value)),), structured=value)

    def value(
        self,
        facts: Mapping[str, Any],
        notices: Sequence[str] = (),
        *,
        failed: bool = False,
    ) -> dict[str, Any]:
        """From Bash's facts. What does not apply to a call is not in it."""
        stdout = self._streams.stdout.shown(MAX_FAILED_STDOUT_CHARS if failed else MAX_STDOUT_CHARS)
        stderr = self._streams.stderr.shown(MAX_FAILED_STDERR_CHARS if failed else MAX_STDERR_CHARS)
        value: dict[str, Any] = {
            "stdout": stdout.text,
            "stderr": stderr.text,
            "exitCode": facts.get("exit_code"),
            "timedOut": bool(facts.get("timed_out")),
            "durationMs": facts.get("duration_ms"),
        }
        more = {
            "cwd": facts.get("cwd"),
            "taskId": facts.get("task_id"),
            "outputFile": facts.get("output_file"),
            "truncated": _is_cut(stdout, stderr),
            "notices": list(notices),
        }
        return {**value, **{name: one for name, one in more.items() if one}}


def as_json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_cut(*parts: OutputPart) -> bool:
    return any(part.truncated for part in parts)
