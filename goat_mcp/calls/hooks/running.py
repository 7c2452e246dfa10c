"""Runs a hook's program: data as JSON on its standard input, nothing else of the call; bounds on time and output."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from goat_mcp.calls.hooks.answer import BLOCKS, HookRun
from goat_mcp.calls.hooks.command import HookCommand
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.processes.program import run_program

MAX_OUTPUT_BYTES = 1024 * 1024
_PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR")
_PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"


@dataclass(frozen=True)
class HookRunner:
    """`project` is the folder programs run in: the workspace's first directory, None where there is none."""

    environment: CommandEnvironment
    guard: ProcessGuard
    project: Callable[[], Path | None]

    async def run(self, hook: HookCommand, data: Mapping[str, Any], *, timeout_s: float | None = None) -> HookRun:
        """Run it to its end. It leads a process group of its own, and what it started ends with it."""
        output = bytearray()
        limit_s = hook.timeout_s if timeout_s is None else min(timeout_s, hook.timeout_s)

        def keep(piece: bytes) -> None:
            output.extend(piece[: MAX_OUTPUT_BYTES + 1 - len(output)])
            if len(output) > MAX_OUTPUT_BYTES and not hook.is_imported:
                too_big.cancel()

        end = None
        try:
            with anyio.CancelScope() as too_big:
                end = await run_program(
                    self._words(hook),
                    data=json.dumps(data, ensure_ascii=True, default=str).encode() + b"\n",
                    directory=self._directory(),
                    environment=await self._environment(hook),
                    guard=self.guard,
                    on_output=keep,
                    timeout_s=limit_s,
                )
        except (OSError, ValueError) as problem:
            reason = problem.strerror if isinstance(problem, OSError) else str(problem)
            return HookRun(failure=f"{hook.argv[0]} cannot be run: {reason}")
        if end is not None and end.timed_out:
            return HookRun(failure=f"it took longer than {limit_s:g} s and was ended")
        if len(output) > MAX_OUTPUT_BYTES or end is None:
            if end is not None and end.exit_code == BLOCKS:
                # An imported hook refuses with its exit code, whatever it prints (R-HOOK-2).
                return HookRun(end.exit_code, "", end.stderr_tail)
            return HookRun(failure=f"its output is longer than {MAX_OUTPUT_BYTES} bytes")
        text = output.decode("utf-8", "replace")
        return HookRun(end.exit_code, text, end.stderr_tail)

    def _directory(self) -> Path:
        project = self.project()
        return project if project is not None else Path("/")

    def _words(self, hook: HookCommand) -> tuple[str, ...]:
        if not hook.is_imported or hook.in_shell:
            return hook.argv
        # As Claude Code does it. A shell reads the variable itself, and nothing is put into what it parses.
        return tuple(word.replace(f"${{{_PROJECT_VARIABLE}}}", str(self._directory())) for word in hook.argv)

    async def _environment(self, hook: HookCommand) -> dict[str, str]:
        all_of_it = await self.environment.build()
        chosen = {name: value for name, value in all_of_it.items() if name in _PASSED_ON or name.startswith("LC_")} | {
            name: os.environ[name] for name in hook.env if name in os.environ
        }
        if hook.is_imported:
            chosen[_PROJECT_VARIABLE] = str(self._directory())
        return chosen
