"""A program of the user that gets each record as JSON on its stdin. Its exit code is logged and decides nothing."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio

from goat_mcp.calls.hooks.runner import hook_environment
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.gateway.approvals.notify.channel import TEST_TEXT
from goat_mcp.gateway.approvals.notify.message import Message, document_about
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.program import run_program
from goat_mcp.processes.program_lookup import program_on

TIMEOUT_S = 30.0
MAX_OUTPUT_BYTES = 64 * 1024


class ProgramChannel:
    """As hooks run (R-HOOK-1): words, no shell, a minimal environment, a process group of its own, caps."""

    def __init__(
        self, words: Sequence[str], environment: CommandEnvironment, guard: ProcessGuard, redactor: Redactor
    ) -> None:
        self._words = words
        self._environment = environment
        self._guard = guard
        self._redactor = redactor
        self.name = "program"
        self.key = f"program {hashlib.sha256(json.dumps(list(words)).encode()).hexdigest()[:16]}"

    async def send(self, message: Message) -> str:
        await self._run(document_about(message, self._redactor))
        return ""

    async def send_test(self) -> None:
        await self._run({"event": "test", "text": TEST_TEXT})

    async def check(self) -> None:
        environment = await hook_environment(self._environment)
        if program_on(environment["PATH"], self._words[0]) is None:
            raise ToolError(
                ErrorCode.NOT_CONFIGURED, f"there is no program {self._words[0]}", "Write its absolute path."
            )

    async def _run(self, document: Mapping[str, Any]) -> None:
        environment = await hook_environment(self._environment)
        data = json.dumps(document, ensure_ascii=True).encode() + b"\n"
        await run_notifier(self._words, data, environment, self._guard)


async def run_notifier(words: Sequence[str], data: bytes, environment: Mapping[str, str], guard: ProcessGuard) -> None:
    """Raises `ToolError` if it cannot run, takes too long, prints too much, or exits with another code than 0."""
    printed = 0
    end = None

    def count(piece: bytes) -> None:
        nonlocal printed
        printed += len(piece)
        if printed > MAX_OUTPUT_BYTES:
            too_much.cancel()

    try:
        with anyio.CancelScope() as too_much:
            end = await run_program(
                words,
                data=data,
                directory=Path("/"),
                environment=environment,
                guard=guard,
                on_output=count,
                timeout_s=TIMEOUT_S,
            )
    except (OSError, ValueError) as problem:
        reason = problem.strerror if isinstance(problem, OSError) else str(problem)
        raise ToolError(
            ErrorCode.NOT_CONFIGURED, f"{words[0]} cannot be run: {reason}", "Write the absolute path of a program."
        ) from None
    if end is None:
        raise _failed(words, f"printed more than {MAX_OUTPUT_BYTES:,} bytes and was ended")
    if end.timed_out:
        raise _failed(words, f"took longer than {TIMEOUT_S:g} s and was ended")
    if end.exit_code != 0:
        last = end.stderr_tail.strip().splitlines()[-1:]
        raise _failed(words, f"exited with {end.exit_code}{f': {last[0][:200]}' if last else ''}")


def _failed(words: Sequence[str], what: str) -> ToolError:
    return ToolError(ErrorCode.TOOL, f"{words[0]} {what}", "Try it: goat-mcp approvals --test-notify.")
