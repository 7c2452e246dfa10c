"""Config: read a setting, or change one of a closed list for this session. `SettingsView` knows which."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Protocol

from pydantic import AfterValidator, Field, WithJsonSchema

from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.coercion import shown_value
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import Hints, Risk, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import Access, BuiltinTool
from goat_mcp.state.session_settings import SessionSettings


class SettingsView(Protocol):
    """The settings by their keys, dots as levels, as the server was started with them."""

    def key_of(self, name: str) -> str:
        """The key that `name` stands for. Raises `ToolError(SETTING)` with near ones."""
        ...

    def value(self, key: str) -> Any:
        """As JSON. Of a secret only `set` or `unset`."""
        ...

    def source(self, key: str) -> str:
        """`flag`, `environment`, `file` or `default`."""
        ...

    def check(self, key: str, value: Any) -> Any:
        """The value as the setting takes it, for a session that wants to change it.

        Raises `ToolError`: PERMISSION for a setting that is the user's alone, INPUT for a wrong value.
        """
        ...


RESET = "default"


def _plain(value: Any) -> Any:
    if value is not None and not isinstance(value, str | bool | int | float):
        raise ValueError(f"wants text, a number, true or false; got {shown_value(value)}")
    return value


_Value = Annotated[Any, AfterValidator(_plain), WithJsonSchema({"type": ["string", "boolean", "number"]})]


class ConfigInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {"key": "setting"}

    setting: str
    value: _Value = Field(None, description="Leave out to read; default resets")


@dataclass(frozen=True)
class Config(
    BuiltinTool[ConfigInput],
    side_effect=SideEffect.READ_ONLY,
    toolset="state",
    title="Read or change a setting",
    hints=Hints(read_only=False, destructive=False, idempotent=True, open_world=False),
):
    """Read a setting of this server, or change one for this session. Permissions and limits are the user's alone."""

    examples = (
        ToolExample("Read a setting", {"setting": "output.max_chars"}),
        ToolExample("Longer results", {"setting": "output.max_chars", "value": 60000}),
        ToolExample("As the user has it", {"setting": "output.max_chars", "value": "default"}),
    )

    view: SettingsView
    changed: SessionSettings
    modes: SessionModes

    def validate(self, arguments: Mapping[str, Any]) -> ConfigInput:
        # Refused here, a change that can never be is not put to a person first.
        input = super().validate(arguments)
        key = self.view.key_of(input.setting)
        value = input.value if input.value in (None, RESET) else self.view.check(key, input.value)
        if value == RESET:
            self.view.check(key, self.view.value(key))
        return ConfigInput.model_construct(setting=key, value=value)

    def access(self, input: ConfigInput) -> Access:
        return Access(category="config", risk=Risk.NONE if input.value is None else Risk.MEDIUM)

    async def execute(self, input: ConfigInput, ctx: ToolContext) -> ToolResult:
        key, value = input.setting, input.value
        before, source = await self._now(key, ctx)
        if value is None:
            return _answer(key, before, source)
        if value == RESET:
            await self.changed.reset(ctx, key)
        else:
            await self.changed.put(ctx, key, value)
        now, source = await self._now(key, ctx)
        return _answer(key, now, source, previous=before, is_set=True)

    async def _now(self, key: str, ctx: ToolContext) -> tuple[Any, str]:
        if key == "mode" and (mode := self.modes.of(ctx.session_key)) != self.view.value(key):
            return mode.value, "plan approved" if self.modes.is_by_plan(ctx.session_key) else "session"
        changed = await self.changed.of(ctx)
        return (changed[key], "session") if key in changed else (self.view.value(key), self.view.source(key))


def _answer(key: str, value: Any, source: str, *, previous: Any = None, is_set: bool = False) -> ToolResult:
    text = f"{key} = {_shown(value)} ({source})"
    if is_set:
        text += f", before {_shown(previous)}"
    facts = {"setting": key, "value": value, "previous": previous, "source": source}
    return text_result(text, facts=facts, replace_text=True)


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
