"""Hook programs for tests: small shell scripts that keep what they were given, and pipelines that run them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goat_mcp.calls.hooks import Hooks
from goat_mcp.calls.hooks.command import HookCommand
from goat_mcp.calls.hooks.runner import HookRunner, Programs
from goat_mcp.calls.permissions.rule_set import RuleConditions
from goat_mcp.calls.pipeline import Pipeline
from goat_mcp.processes import ProcessGuard
from goat_mcp.processes.environment import CommandEnvironment
from goat_mcp.state.telemetry import Telemetry
from tests.calls.test_pipeline import pipeline_over
from tests.tool_doubles import FakeTool


@dataclass(frozen=True)
class Script:
    """A program in `folder` that writes its standard input to a file and then does what `body` says."""

    path: Path

    @property
    def argv(self) -> tuple[str, ...]:
        return ("/bin/sh", str(self.path))

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """What it was given, run by run."""
        lines = self.path.with_suffix(".in")
        return [json.loads(line) for line in lines.read_text().splitlines()] if lines.exists() else []


def script(folder: Path, name: str, body: str = "") -> Script:
    path = folder / f"{name}.sh"
    path.write_text(f'cat >> "{path.with_suffix(".in")}"\n{body}\n')
    return Script(path)


def saying(folder: Path, name: str, said: Mapping[str, Any], *, exit_code: int = 0) -> Script:
    """A program whose answer is `said`."""
    answer = folder / f"{name}.json"
    answer.write_text(json.dumps(said))
    return script(folder, name, f'cat "{answer}"\nexit {exit_code}')


def specific(event: str = "PreToolUse", **members: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": event, **members}}


def own(argv: tuple[str, ...], **options: Any) -> HookCommand:
    """A hook as our own settings configure it."""
    given: dict[str, Any] = {"event": "PreToolUse", "location": "hook", "argv": argv, **options}
    return HookCommand(**given)


def imported(argv: tuple[str, ...], **options: Any) -> HookCommand:
    """A hook with the meaning it has in Claude Code."""
    meaning = {"strict": False, "refuses_on_failure": False, "is_imported": True}
    return own(argv, **{**meaning, **options})


class Facts:
    def directory(self, session_key: str) -> str:
        return "/project"

    def mode(self, session_key: str) -> str:
        return "default"


def programs(folder: Path, *hooks: HookCommand) -> Programs:
    runner = HookRunner(CommandEnvironment(), ProcessGuard(), lambda: folder)
    return Programs(
        hooks, runner, Facts(), RuleConditions(lambda: (str(folder),), os.path.realpath), Telemetry().warning
    )


def hooked(folder: Path, tool: FakeTool, *hooks: HookCommand, **options: Any) -> Pipeline:
    """A pipeline over one tool with these hooks."""
    return pipeline_over(folder, tool, hooks=Hooks(programs=programs(folder, *hooks)), **options)
