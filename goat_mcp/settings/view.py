"""The settings as Config shows them, and the closed list of those a session may change (R-PERM-6, design D10)."""

from __future__ import annotations

import json
import re
from enum import Enum
from pathlib import PurePath
from typing import Any, cast

from pydantic import BaseModel, SecretStr, ValidationError

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.problem_words import demand_of
from goat_mcp.core.redaction import is_secret_name
from goat_mcp.core.settings_part import SettingsPart
from goat_mcp.core.suggestions import nearest
from goat_mcp.settings.settings import ENV_PREFIX, SECRET_NAMES, Settings, setting_keys
from goat_mcp.state.telemetry import LEVELS

SETTABLE = frozenset(
    {
        "output.max_chars",
        "bash.auto_background_after_s",
        "bash.compress_output",
        "edit.allow_fuzz",
        "search.glob_limit",
        "search.grep_head_limit",
        "web.cache_s",
        "web.search.max_results",
        "agent.model",
        "log_level",
    }
)
"""Each is read through `ToolContext.setting`, and none decides what a tool may do or reach."""

ALIASES = {
    "tools.bash.compress_output": "bash.compress_output",
    "tools.edit.allow_fuzz_on_edits": "edit.allow_fuzz",
}
"""Source: goa's settings."""

_USER_IN_URL = re.compile(r":(/+)[^/\s]*@")
_REFERENCE = re.compile(r"\$\{(?:(?:env|file|keyring|secret):)?[^{}:]*\}")
_SHOWN_CHARS = 100
_SHOWN_NEAR = 8


class ConfigView:
    """Implements `SettingsView` over one gateway's settings."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def use(self, settings: Settings) -> None:
        """Show these from now on."""
        self._settings = settings

    def key_of(self, name: str) -> str:
        key = ALIASES.get(name, name)
        known = setting_keys()
        if key in known:
            return key
        near = [found for found in known if found.startswith(f"{key}.") or found.endswith(f".{key}")]
        group = [found for found in sorted(SETTABLE) if found.startswith(f"{key.split('.')[0]}.")]
        near = near or nearest(key, known, most=3, cutoff=0.75) or group
        near = near[:_SHOWN_NEAR]
        suggestion = (
            f"Did you mean {', '.join(near)}?" if near else f"Settings a session may change: {', '.join(_settable())}."
        )
        raise ToolError(
            ErrorCode.SETTING,
            f"no setting {name[:_SHOWN_CHARS]!r}",
            suggestion,
            facts={"setting": name[:_SHOWN_CHARS], "near": near},
        )

    def value(self, key: str) -> Any:
        part, name = self._place(key)
        value = getattr(part, name)
        if isinstance(value, SecretStr):
            value = value.get_secret_value()
            return "set" if value else "unset"
        if name in SECRET_NAMES:
            return "set" if value else "unset"
        return _as_json(value)

    def source(self, key: str) -> str:
        return self._settings.source_of(key)

    def check(self, key: str, value: Any) -> Any:
        if key not in SETTABLE:
            variable = ENV_PREFIX + key.upper().replace(".", "__")
            raise ToolError(
                ErrorCode.PERMISSION,
                f"{key} is not for a session to change: only the user decides what tools may do, reach and cost",
                f"The user can start goat-mcp with --set {key}=VALUE or {variable}, or set it in goat-mcp.yaml. "
                f"A session may change {', '.join(_settable())}.",
                facts={"setting": key},
            )
        given = _plain(value)
        try:
            checked = self._validated(key, given)
        except ValidationError as invalid:
            checked = self._validated_text(key, given, invalid)
        if key == "log_level" and LEVELS.index(checked) > LEVELS.index(self._settings.log_level):
            raise ToolError(
                ErrorCode.INPUT,
                f"value: a session may have more logged than the user asked for ({self._settings.log_level}), not less",
                f"Use one of {', '.join(LEVELS[: LEVELS.index(self._settings.log_level) + 1])}.",
            )
        return checked

    def _place(self, key: str) -> tuple[SettingsPart, str]:
        *levels, name = key.split(".")
        part: SettingsPart = self._settings
        for level in levels:
            part = getattr(part, level)
        return part, name

    def _validated(self, key: str, value: Any) -> Any:
        # The whole part is validated, with every rule that the start of the server would apply.
        part, name = self._place(key)
        changed = type(part).model_validate({**dict(part), name: value}, strict=True)
        return _as_json(getattr(changed, name))

    def _validated_text(self, key: str, value: Any, invalid: ValidationError) -> Any:
        """A number or truth value that came as text. Raises `ToolError(INPUT)`."""
        if isinstance(value, str):
            try:
                return self._validated(key, _plain(json.loads(value.strip().lower().removeprefix("+"))))
            except (ValueError, RecursionError):  # a ValidationError is a ValueError too
                pass
        demand = demand_of(invalid.errors(include_url=False)[0])
        shown = json.dumps(value, ensure_ascii=True)[:_SHOWN_CHARS]
        raise ToolError(
            ErrorCode.INPUT,
            f"value: {key} {demand}; got {type(value).__name__} {shown}",
            "Send another value, or leave it out to read the setting.",
            facts={"setting": key},
        )


def _settable() -> list[str]:
    return sorted(SETTABLE & set(setting_keys()))


def _plain(value: Any) -> Any:
    """Whole numbers without a fraction, whichever way they came, so that what was set is what is read."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _as_json(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, BaseModel):
        return _as_json(value.model_dump(by_alias=True, exclude_unset=True))
    if isinstance(value, PurePath):
        return _hidden(str(value))  # a path may be a URL that somebody gave for one
    if isinstance(value, tuple | list | set | frozenset):
        return [_as_json(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {str(key): _member(str(key), item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, SecretStr):
        text = value.get_secret_value()
        return text if _REFERENCE.fullmatch(text) else "set" if text else "unset"
    if isinstance(value, str):
        return _hidden(value)
    return _plain(value)


def _member(name: str, value: Any) -> Any:
    """Of what is a secret by its name, e.g. a tool's token, a reference is shown, and nothing else (R-SECRET-1)."""
    if isinstance(value, str) and value and is_secret_name(name) and not _REFERENCE.fullmatch(value):
        return "set"
    return _as_json(value)


def _hidden(text: str) -> str:
    """The text without who logs in at a URL in it."""
    return _USER_IN_URL.sub(r":\1***@", text)
