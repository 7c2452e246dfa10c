"""Everything a user can configure, in one tree. Flags beat environment beat file beat defaults (design, section 6).

The defaults alone need no settings library; it is loaded when a file, a variable or `--set` is there to be read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import Field, ValidationError

from goat_mcp.catalog import DEFAULT_TOOLSETS
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.settings_part import SettingsPart
from goat_mcp.core.spec import Toolset
from goat_mcp.editing.options import EditOptions, FileOptions
from goat_mcp.permissions.mode import Approval, Mode
from goat_mcp.tools.bash import BashOptions

ENV_PREFIX = "GOAT_MCP_"
_NOT_SETTINGS = frozenset({"GOAT_MCP_STATE_DIR"})


class PermissionSettings(SettingsPart):
    """Whole-tool rules; deny beats ask beats allow."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class OutputSettings(SettingsPart):
    max_chars: int = Field(default=30_000, ge=1_000, le=1_000_000)
    structured: Literal["auto", "always"] = "auto"


class CatalogSettings(SettingsPart):
    allow: tuple[str, ...] | None = None
    deny: tuple[str, ...] = ()
    toolsets: tuple[Toolset, ...] = DEFAULT_TOOLSETS


class AuditSettings(SettingsPart):
    path: Path | None = None


class LimitSettings(SettingsPart):
    frame_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    sessions: int = Field(default=100, ge=1)
    connections: int = Field(default=512, ge=1)
    calls_per_s: float = Field(default=50.0, ge=0)
    header_deadline_s: float = Field(default=10.0, gt=0)


class Settings(SettingsPart):
    """One gateway's settings. A key that is not here is an error, with the nearest one named."""

    workspace: tuple[Path, ...] = ()
    upstreams: tuple[Path, ...] = ()
    mode: Mode = Mode.DEFAULT
    approval: Approval | None = None
    permissions: PermissionSettings = PermissionSettings()
    output: OutputSettings = OutputSettings()
    files: FileOptions = FileOptions()
    edit: EditOptions = EditOptions()
    bash: BashOptions = BashOptions()
    catalog: CatalogSettings = CatalogSettings()
    audit: AuditSettings = AuditSettings()
    limits: LimitSettings = LimitSettings()
    log_level: Literal["debug", "info", "warning", "error"] = "warning"


class BrokenSettings(ToolError):
    """Settings that cannot be used; the message names the file or flag, the key, the value and what is wanted."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(ErrorCode.CONFIG, message, suggestion)


def load_settings(
    flags: Mapping[str, Any], *, config_file: Path | None = None, overrides: Sequence[str] = ()
) -> Settings:
    """Merge `flags` (a tree of what was given on the command line), `--set` overrides, environment and file.

    Raises `BrokenSettings`.
    """
    given: dict[str, Any] = {key: value for key, value in flags.items() if value not in (None, (), [])}
    for override in overrides:
        _place(given, override)
    config_file = config_file or _user_config_file()
    if config_file is None and not any(key.startswith(ENV_PREFIX) and key not in _NOT_SETTINGS for key in os.environ):
        return _validated(given, "the command line")
    return _from_all_sources(given, config_file)


def _place(tree: dict[str, Any], override: str) -> None:
    key, separator, text = override.partition("=")
    if not separator or not key:
        raise BrokenSettings(f"--set {override!r} is not KEY=VALUE", "Write e.g. --set output.max_chars=20000.")
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = text
    *levels, last = key.split(".")
    for level in levels:
        tree = tree.setdefault(level, {})
    tree[last] = value


def _user_config_file() -> Path | None:
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    if os.name == "nt":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    file = base / "goat-mcp" / "goat-mcp.yaml"
    return file if file.is_file() else None


def _from_all_sources(flags: dict[str, Any], config_file: Path | None) -> Settings:
    from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

    from_file = _read_config_file(config_file) if config_file else {}

    class Sources(BaseSettings, Settings):  # pyright: ignore[reportIncompatibleVariableOverride]  # model_config
        model_config = SettingsConfigDict(  # pyright: ignore[reportIncompatibleVariableOverride]  # model_config
            env_prefix=ENV_PREFIX,
            env_nested_delimiter="__",
            extra="forbid",
            frozen=True,
            nested_model_default_partial_update=True,
        )

        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            from pydantic_settings import InitSettingsSource

            return init_settings, env_settings, InitSettingsSource(settings_cls, from_file)

    origin = f"the command line, the environment ({ENV_PREFIX}*)" + (f" or {config_file}" if config_file else "")
    try:
        merged = Sources(**flags)
    except ValidationError as invalid:
        raise _broken(invalid, origin) from None
    return _validated(merged.model_dump(), origin)


def _read_config_file(path: Path) -> dict[str, Any]:
    import yaml

    try:
        loaded: Any = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise BrokenSettings(
            f"{path}: cannot be read: {problem.strerror}", "Name another file with --config."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        where = getattr(problem, "problem_mark", None)
        line = f":{where.line + 1}:{where.column + 1}" if where else ""
        reason = getattr(problem, "problem", None) or "it is not UTF-8 text"
        raise BrokenSettings(f"{path}{line}: not valid YAML: {reason}", "Mend the file and start again.") from None
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise BrokenSettings(f"{path}: wants settings as `key: value`, got {type(loaded).__name__}")
    return cast("dict[str, Any]", loaded)


def _validated(values: Mapping[str, Any], origin: str) -> Settings:
    try:
        return Settings.model_validate(values)
    except ValidationError as invalid:
        raise _broken(invalid, origin) from None


def _broken(invalid: ValidationError, origin: str) -> BrokenSettings:
    lines: list[str] = []
    for error in invalid.errors(include_url=False):
        key = ".".join(str(part) for part in error["loc"])
        if error["type"] == "extra_forbidden":
            lines.append(f"{key}: no such setting{_nearest(key)}")
        else:
            lines.append(f"{key}: {error['msg']}; got {error['input']!r:.80}")
    return BrokenSettings(f"settings from {origin}:\n" + "\n".join(lines), "Mend these settings and start again.")


def _nearest(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, setting_keys(), n=1)
    return f"; did you mean {near[0]}?" if near else "; known are " + ", ".join(setting_keys())


def setting_keys() -> list[str]:
    """Every setting's key, dots as levels."""
    keys: list[str] = []
    for name, field in Settings.model_fields.items():
        part = field.annotation
        if isinstance(part, type) and issubclass(part, SettingsPart):
            keys.extend(f"{name}.{inner}" for inner in part.model_fields)
        else:
            keys.append(name)
    return keys
