"""Everything a user can configure, in one tree. Flags beat environment beat file beat defaults (design, section 6)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError

from goat_mcp.agents.options import AgentOptions
from goat_mcp.audit.options import AuditSettings
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.settings_part import SettingsPart
from goat_mcp.core.spec import DEFAULT_TOOLSETS, Toolset
from goat_mcp.editing.options import EditOptions, FileOptions
from goat_mcp.permissions.mode import Approval, Mode
from goat_mcp.permissions.plan_approval import PlanOptions
from goat_mcp.search.options import SearchLimits
from goat_mcp.subprocesses.options import BashOptions
from goat_mcp.web.options import WebOptions

ENV_PREFIX = "GOAT_MCP_"
_NOT_SETTINGS = frozenset({"GOAT_MCP_STATE_DIR", "GOAT_MCP_CALL", "GOAT_MCP_AGENT_DEPTH"})
"""Where state lies, and the marks that commands and agents of a goat-mcp carry: another one may be among them."""
SECRET_NAMES = frozenset({"key", "token", "password"})
_URL_WITH_USER = re.compile(r"://[^/]*@")


def _one_or_many(value: Any) -> Any:
    values: Any = [value] if isinstance(value, str | Path) else value
    if isinstance(values, list | tuple) and "" in values:
        # An unset shell variable, most likely. As a path it would mean the current directory.
        raise ValueError("empty text names nothing")
    return cast("Any", values)


Names = Annotated[tuple[str, ...], BeforeValidator(_one_or_many)]
Paths = Annotated[tuple[Path, ...], BeforeValidator(_one_or_many)]


class PermissionSettings(SettingsPart):
    """Whole-tool rules; deny beats ask beats allow."""

    allow: Names = ()
    ask: Names = ()
    deny: Names = ()


class OutputSettings(SettingsPart):
    max_chars: int = Field(default=30_000, ge=1_000, le=1_000_000)
    structured: Literal["auto", "always"] = "auto"


class CatalogSettings(SettingsPart):
    """Which tools there are. `allow` and `deny` hold tools, `mcp__SERVER`, `toolset:NAME` and `preset:NAME`."""

    allow: Names | None = None
    deny: Names = ()
    toolsets: Annotated[tuple[Toolset, ...], BeforeValidator(_one_or_many)] = DEFAULT_TOOLSETS
    presets: Mapping[str, Names] = {}


class LimitSettings(SettingsPart):
    frame_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    sessions: int = Field(default=100, ge=1)
    connections: int = Field(default=512, ge=1)
    calls_per_s: float = Field(default=50.0, ge=0)
    header_deadline_s: float = Field(default=10.0, gt=0)


class Settings(SettingsPart):
    """One gateway's settings. A key that is not here is an error, with the nearest one named."""

    workspace: Paths = ()
    upstreams: Paths = ()
    mode: Mode = Mode.DEFAULT
    approval: Approval | None = None
    plan: PlanOptions = PlanOptions()
    permissions: PermissionSettings = PermissionSettings()
    output: OutputSettings = OutputSettings()
    files: FileOptions = FileOptions()
    edit: EditOptions = EditOptions()
    bash: BashOptions = BashOptions()
    search: SearchLimits = SearchLimits()
    web: WebOptions = WebOptions()
    agent: AgentOptions = AgentOptions()
    catalog: CatalogSettings = CatalogSettings()
    audit: AuditSettings = AuditSettings()
    limits: LimitSettings = LimitSettings()
    log_level: Literal["debug", "info", "warning", "error"] = "warning"

    _sources: dict[str, str] = PrivateAttr(default_factory=dict[str, str])

    def remember_sources(self, sources: Mapping[str, str]) -> None:
        self._sources.update(sources)

    def source_of(self, key: str) -> str:
        """Where the value of a setting came from: `flag`, `environment`, `file`, `default`."""
        return self._sources.get(key, "default")


class BrokenSettings(ToolError):
    """Settings that cannot be used; the message names the file or flag, the key, the value and what is wanted."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(ErrorCode.CONFIG, message, suggestion)


def load_settings(
    flags: Mapping[str, Any],
    *,
    config_file: Path | None = None,
    overrides: Sequence[str] = (),
    added: Mapping[str, Sequence[str]] | None = None,
) -> Settings:
    """Merge `flags` (a tree of what was given on the command line), `--set` overrides, environment and file.

    `added` goes to the end of lists, by key, whoever set them: what a file denies stays denied where a flag denies
    more. Raises `BrokenSettings`.
    """
    config_file = config_file or _user_config_file()
    tree = _read_config_file(config_file) if config_file is not None else {}
    sources = dict.fromkeys(_keys_in(tree), "file")
    origins = ["the command line", f"the environment ({ENV_PREFIX}*)", *([str(config_file)] if config_file else [])]
    for variable, text in sorted(os.environ.items()):
        if variable.startswith(ENV_PREFIX) and variable not in _NOT_SETTINGS:
            key = _key_of_variable(variable)
            value = _place(tree, key, text, variable)
            sources |= dict.fromkeys(_keys_in(value, key), "environment")
    given = {key: value for key, value in flags.items() if value not in (None, (), [])}
    _merge(tree, given)
    sources |= dict.fromkeys(_keys_in(given), "flag")
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator or not key:
            raise BrokenSettings(f"--set {override!r} is not KEY=VALUE", "Write e.g. --set output.max_chars=20000.")
        value = _place(tree, key, text, f"--set {key}")
        sources |= dict.fromkeys(_keys_in(value, key), "flag")
    for key, names in (added or {}).items():
        _append(tree, key, names)
        sources[key] = "flag"
    settings = settings_of(tree, " or ".join(origins))
    settings.remember_sources(sources)
    return settings


def settings_of(tree: Mapping[str, Any], origin: str) -> Settings:
    """The settings that `tree` holds, and nothing from elsewhere. `origin` names it in errors.

    Raises `BrokenSettings`.
    """
    try:
        return Settings.model_validate(tree)
    except ValidationError as invalid:
        raise _broken(invalid, origin) from None


def _keys_in(value: Any, key: str = "") -> list[str]:
    """The keys that `value`, the tree under `key`, has values for. A dictionary below a setting's key is its value."""
    if not isinstance(value, dict) or (key and key in setting_keys()):
        return [key]
    below = cast("dict[Any, Any]", value).items()
    return [found for name, inner in below for found in _keys_in(inner, f"{key}.{name}" if key else str(name))]


def _key_of_variable(variable: str) -> str:
    """`GOAT_MCP_OUTPUT__MAX_CHARS` -> `output.max_chars`. Raises `BrokenSettings` for one that is no setting's."""
    key = variable.removeprefix(ENV_PREFIX).lower().replace("__", ".")
    if key not in setting_keys() and not any(known.startswith(f"{key}.") for known in setting_keys()):
        raise BrokenSettings(f"environment variable {variable}: no such setting{_nearest(key)}", f"Unset {variable}.")
    return key


def _place(tree: dict[str, Any], key: str, text: str, origin: str) -> Any:
    """Put a value where its key says; it is read as JSON where it parses, else as text. Returns the value."""
    try:
        value: Any = json.loads(text)
    except ValueError:
        value = text
    *levels, last = key.split(".")
    for level in levels:
        below = tree.setdefault(level, {})
        if not isinstance(below, dict):
            raise BrokenSettings(f"{origin}: {level} is set to {below!r} already and has no levels")
        tree = cast("dict[str, Any]", below)
    tree[last] = value
    return value


def _append(tree: dict[str, Any], key: str, names: Sequence[str]) -> None:
    part, _, last = key.partition(".")
    below = tree.setdefault(part, {})
    if isinstance(below, dict):  # anything else is told as the broken setting that it is
        given: Any = cast("dict[str, Any]", below).get(last, [])
        below[last] = [*(given if isinstance(given, list | tuple) else [given]), *names]


def _merge(tree: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        below = tree.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            _merge(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            tree[key] = value


def _user_config_file() -> Path | None:
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    if os.name == "nt":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    file = base / "goat-mcp" / "goat-mcp.yaml"
    return file if file.is_file() else None


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


def _broken(invalid: ValidationError, origin: str) -> BrokenSettings:
    lines: list[str] = []
    for error in invalid.errors(include_url=False):
        key = ".".join(str(part) for part in error["loc"])
        if error["type"] == "extra_forbidden":
            lines.append(f"{key}: no such setting{_nearest(key)}")
        else:
            lines.append(f"{key}: {error['msg']}; got {_shown(key, error['input'])}")
    return BrokenSettings(f"settings from {origin}:\n" + "\n".join(lines), "Mend these settings and start again.")


def _shown(key: str, value: Any) -> str:
    """A value that is wrong, unless it is or may hold a secret (a key, a URL with a password)."""
    if key.rpartition(".")[2] in SECRET_NAMES or _URL_WITH_USER.search(str(value)):
        return f"a {type(value).__name__} that is not shown"
    return f"{value!r:.80}"


def _nearest(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, setting_keys(), n=1)
    return f"; did you mean {near[0]}?" if near else "; known are " + ", ".join(setting_keys())


def setting_keys() -> list[str]:
    """Every setting's key, dots as levels."""
    return _keys_below(Settings, "")


def _keys_below(part: type[SettingsPart], prefix: str) -> list[str]:
    keys: list[str] = []
    for name, field in part.model_fields.items():
        below = field.annotation
        if isinstance(below, type) and issubclass(below, SettingsPart):
            keys.extend(_keys_below(below, f"{prefix}{name}."))
        else:
            keys.append(prefix + name)
    return keys
