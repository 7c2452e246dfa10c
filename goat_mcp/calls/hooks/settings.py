"""What a user can configure about hooks: the setting `hooks`, in the shape of Claude Code's settings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, get_args

from pydantic import BeforeValidator, Field

from goat_mcp.core.settings_part import SettingsPart

HookEvent = Literal["PreToolUse", "PostToolUse", "PostToolUseFailure", "SessionStart", "SessionEnd", "SubagentStop"]
EVENTS: tuple[HookEvent, ...] = get_args(HookEvent)
TOOL_EVENTS: tuple[HookEvent, ...] = EVENTS[:3]
MAX_TIMEOUT_S = 600.0


def program_words(value: Any) -> Any:
    """The words of a program that runs without a shell. Raises `ValueError`."""
    if isinstance(value, str):
        raise ValueError('wants a list of words, e.g. ["python3", "/home/me/check.py"]: no shell runs it')
    if isinstance(value, list | tuple) and value:
        program = str(value[0])  # pyright: ignore[reportUnknownArgumentType]  # any JSON
        if ("/" in program and not program.startswith("/")) or program.startswith("~"):
            raise ValueError(
                f"{program} is relative to whatever folder is worked in, which may hold another program of that "
                "name; write the absolute path"
            )
    return value  # pyright: ignore[reportUnknownVariableType]  # any JSON


class HookProgram(SettingsPart):
    """One program. `timeout` is in seconds, as in Claude Code; `env` names variables of ours that it gets too.

    One that observes never refuses a call: whatever it answers, and its failures, are logged only.
    """

    type: Literal["command"] = "command"
    command: Annotated[tuple[str, ...], BeforeValidator(program_words), Field(min_length=1)]
    condition: str = Field(default="", alias="if")
    timeout: float = Field(default=30.0, gt=0, le=MAX_TIMEOUT_S)
    observe: bool = False
    env: tuple[str, ...] = ()


class HookGroup(SettingsPart):
    """Programs that run for the tools (or agent types, or ways a session began) that `matcher` names."""

    matcher: str = ""
    hooks: tuple[HookProgram, ...]


class HookSettings(SettingsPart):
    """Programs by event, each in the order they run."""

    PreToolUse: tuple[HookGroup, ...] = ()
    PostToolUse: tuple[HookGroup, ...] = ()
    PostToolUseFailure: tuple[HookGroup, ...] = ()
    SessionStart: tuple[HookGroup, ...] = ()
    SessionEnd: tuple[HookGroup, ...] = ()
    SubagentStop: tuple[HookGroup, ...] = ()

    def entries(self) -> Iterator[tuple[HookEvent, str, str, HookProgram]]:
        """Event, the place in the settings, the matcher and the program of each, in order."""
        for event in EVENTS:
            groups: tuple[HookGroup, ...] = getattr(self, event)
            for group_number, group in enumerate(groups):
                for number, program in enumerate(group.hooks):
                    yield event, f"hooks.{event}.{group_number}.hooks.{number}", group.matcher, program
