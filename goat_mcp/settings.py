"""Everything a user can configure, in one tree. Flags beat environment beat file beat defaults (design, section 6)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

from pydantic import BeforeValidator, Field, PrivateAttr, ValidationError

from goat_mcp.agents.options import AgentOptions
from goat_mcp.audit.options import AuditSettings
from goat_mcp.call_slots import IN_ALL, PER_PRINCIPAL
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.settings_part import Names, SettingsPart, one_or_many
from goat_mcp.core.spec import DEFAULT_TOOLSETS, Toolset
from goat_mcp.editing.options import EditOptions, FileOptions
from goat_mcp.hooks.options import HookSettings
from goat_mcp.permissions.mode import Approval, Mode
from goat_mcp.permissions.plan_approval import PlanOptions
from goat_mcp.sandbox.options import SandboxOptions
from goat_mcp.search.options import SearchLimits
from goat_mcp.state.directory import StateDirectory
from goat_mcp.subprocesses.options import BashOptions
from goat_mcp.trust import FILE_NAME
from goat_mcp.web.options import WebOptions
from goat_mcp.workspace.default_roots import default_roots

if TYPE_CHECKING:  # loaded where there is a settings file
    from goat_mcp.trust.project import ProjectSay

ENV_PREFIX = "GOAT_MCP_"
_NOT_SETTINGS = frozenset({"GOAT_MCP_STATE_DIR", "GOAT_MCP_CALL", "GOAT_MCP_AGENT_DEPTH"})
"""Where state lies, and the marks that commands and agents of a goat-mcp carry: another one may be among them."""
SECRET_NAMES = frozenset({"key", "token", "password"})
_ADD_UP = (
    *("permissions.allow", "permissions.ask", "permissions.deny", "catalog.deny", "bash.blocked"),
    *("hooks", "claude_settings", "extensions"),
)
"""Lists in which both the user's and a trusted project's entries count. All else a project's value replaces."""
_URL_WITH_SECRET = re.compile(r"://(?:[^/]*@|[^?#]*\?)")


Paths = Annotated[tuple[Path, ...], BeforeValidator(one_or_many)]


class PermissionSettings(SettingsPart):
    """Rules such as `Bash(npm run *)` or `Read(./secrets/**)`; deny beats ask beats allow."""

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
    toolsets: Annotated[tuple[Toolset, ...], BeforeValidator(one_or_many)] = DEFAULT_TOOLSETS
    presets: Mapping[str, Names] = {}


class LimitSettings(SettingsPart):
    concurrent_calls: int = Field(default=PER_PRINCIPAL, ge=1)
    concurrent_calls_in_all: int = Field(default=IN_ALL, ge=1)
    frame_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    sessions: int = Field(default=100, ge=1)
    connections: int = Field(default=512, ge=1)
    calls_per_s: float = Field(default=50.0, ge=0)
    header_deadline_s: float = Field(default=10.0, gt=0)


class Settings(SandboxOptions):
    """One gateway's settings. A key that is not here is an error, with the nearest one named."""

    workspace: Paths = ()
    upstreams: Paths = ()
    mode: Mode = Mode.DEFAULT
    approval: Approval | None = None
    plan: PlanOptions = PlanOptions()
    permissions: PermissionSettings = PermissionSettings()
    claude_settings: Paths = ()
    hooks: HookSettings = HookSettings()
    extensions: Names = ()
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
    _notices: list[str] = PrivateAttr(default_factory=list[str])
    _contents: dict[Path, bytes] = PrivateAttr(default_factory=dict[Path, bytes])
    _project_file: list[Path] = PrivateAttr(default_factory=list[Path])
    _users_file: list[Path] = PrivateAttr(default_factory=list[Path])

    def remember(self, origin: SettingsOrigin) -> None:
        """Take in where all this came from."""
        self._sources.update(origin.sources)
        self._notices.extend(origin.notices)
        self._contents.update(origin.contents)
        self._project_file.extend(origin.project_files)
        self._users_file.extend(origin.users_files)

    def source_of(self, key: str) -> str:
        """Where the value of a setting came from: `flag`, `environment`, `project`, `file`, `default`."""
        return self._sources.get(key, "default")

    @property
    def config_files(self) -> Sequence[Path]:
        """The files that values came from."""
        return (*self._users_file, *self._project_file)

    @property
    def notices(self) -> Sequence[str]:
        """What the user should know about their files, e.g. that a project's is not trusted."""
        return tuple(self._notices)

    @property
    def contents(self) -> Mapping[Path, bytes]:
        """Files as the user trusted them. Whoever opens a file that a setting names takes these bytes instead."""
        return self._contents

    def overlooks_project(self, folder: Path) -> bool:
        """Whether a settings file lies in `folder` that was not there to be asked when these were loaded."""
        file = folder.resolve() / FILE_NAME
        return file not in self._project_file and os.path.lexists(file)


@dataclass
class SettingsOrigin:
    """Where settings came from, and what is odd about it. Of interest to people, and to whoever opens their files."""

    sources: dict[str, str] = field(default_factory=dict[str, str])
    notices: list[str] = field(default_factory=list[str])
    contents: Mapping[Path, bytes] = field(default_factory=dict[Path, bytes])
    project_files: Sequence[Path] = ()
    users_files: Sequence[Path] = ()


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
    state: StateDirectory | None = None,
) -> Settings:
    """Merge `flags` (a tree of what was given on the command line), `--set` overrides, environment and files.

    `added` goes to the end of lists, by key, whoever set them: what a file denies stays denied where a flag denies
    more. The workspace's own file counts as far as the user trusts it; with a `config_file` only what it denies does.
    `state` is where trust is kept. Raises `BrokenSettings`.
    """
    users_file, users_tree = _users_tree(config_file)
    tree, origin = _with_given(users_tree, flags, overrides)
    project = _project_say(tree, config_file, state or StateDirectory.default(), origin)
    if project is not None:
        if project.tree:
            notices = origin.notices
            tree, origin = _with_given(users_tree, flags, overrides, project)
            origin.notices += notices
        origin.project_files = (project.file,)
        origin.contents = project.contents
        if project.notice:
            origin.notices.append(project.notice)
        for key, names in project.denials.items():
            # Whatever stands above it: a denial is never lost.
            _append(tree, key, names)
    for key, names in (added or {}).items():
        _append(tree, key, names)
        origin.sources[key] = "flag"
    named = ["the command line", f"the environment ({ENV_PREFIX}*)", *([users_file] if users_file else [])]
    settings = settings_of(tree, " or ".join([*named, *(str(file) for file in origin.project_files)]))
    origin.users_files = (Path(users_file),) if users_file else ()
    settings.remember(origin)
    return settings


def _with_given(
    users_tree: Mapping[str, Any],
    flags: Mapping[str, Any],
    overrides: Sequence[str],
    project: ProjectSay | None = None,
) -> tuple[dict[str, Any], SettingsOrigin]:
    """The user's file, a trusted project's over it, and over both what the environment and the command line say."""
    tree = deepcopy(dict(users_tree))
    sources = dict.fromkeys(keys_in(tree), "file")
    if project is not None:
        _layer(tree, project.tree)
        # What a project says holds for it and not for another one that a client happens to be in.
        tree.setdefault("workspace", [str(project.file.parent)])
        sources |= dict.fromkeys([*keys_in(dict(project.tree)), "workspace"], "project")
    for variable, text in sorted(os.environ.items()):
        if variable.startswith(ENV_PREFIX) and variable not in _NOT_SETTINGS:
            key = _key_of_variable(variable)
            value = _place(tree, key, text, variable)
            sources |= dict.fromkeys(keys_in(value, key), "environment")
    given = {key: value for key, value in flags.items() if value not in (None, (), [])}
    _merge(tree, given)
    sources |= dict.fromkeys(keys_in(given), "flag")
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator or not key:
            raise BrokenSettings(f"--set {override!r} is not KEY=VALUE", "Write e.g. --set output.max_chars=20000.")
        value = _place(tree, key, text, f"--set {key}")
        sources |= dict.fromkeys(keys_in(value, key), "flag")
    return tree, SettingsOrigin(sources)


def settings_of(tree: Mapping[str, Any], origin: str) -> Settings:
    """The settings that `tree` holds, and nothing from elsewhere. `origin` names it in errors.

    Raises `BrokenSettings`.
    """
    try:
        return Settings.model_validate(tree)
    except ValidationError as invalid:
        raise _broken(invalid, origin) from None


def keys_in(value: Any, key: str = "") -> list[str]:
    """The keys that `value`, the tree under `key`, has values for. A dictionary below a setting's key is its value."""
    if not isinstance(value, dict) or (key and key in setting_keys()):
        return [key]
    below = cast("dict[Any, Any]", value).items()
    return [found for name, inner in below for found in keys_in(inner, f"{key}.{name}" if key else str(name))]


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
        given = cast("dict[str, Any]", below)
        before = _as_list(given.get(last))
        given[last] = [*before, *(name for name in names if name not in before)]


def _as_list(value: Any) -> list[Any]:
    if value is None:
        return []
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else [value]


def _layer(tree: dict[str, Any], over: Mapping[str, Any], above: str = "") -> None:
    """Put a project's settings over the user's. Rules and hooks of both hold: trusting a project lifts no denial."""
    for name, value in over.items():
        key = f"{above}.{name}" if above else name
        below = tree.get(name)
        if isinstance(value, dict) and isinstance(below, dict):
            _layer(cast("dict[str, Any]", below), cast("dict[str, Any]", value), key)
        elif key.startswith(_ADD_UP):
            tree[name] = [*_as_list(below), *_as_list(value)]
        else:
            tree[name] = deepcopy(cast("Any", value))


def _merge(tree: dict[str, Any], over: Mapping[str, Any]) -> None:
    for key, value in over.items():
        below = tree.get(key)
        if isinstance(value, dict) and isinstance(below, dict):
            _merge(cast("dict[str, Any]", below), cast("dict[str, Any]", value))
        else:
            tree[key] = value


def _users_tree(named: Path | None) -> tuple[str, Mapping[str, Any]]:
    """The user's own file, and what it says; empty where there is none."""
    path = named or _config_folder() / FILE_NAME
    # A link that leads nowhere is no missing file: rules may be at its end.
    if named is None and not os.path.lexists(path):
        return "", {}
    from goat_mcp.trust.named_paths import with_absolute_paths
    from goat_mcp.trust.settings_file import BrokenFile, read_users_file

    try:
        file = read_users_file(path)
        tree = with_absolute_paths(file.tree, path.absolute().parent, path_keys())
    except BrokenFile as broken:
        raise BrokenSettings(str(broken), "Mend the file and start again, or name another one with --config.") from None
    for key, value in _secrets_in(tree):
        if file.why_readable and "${" not in value:
            raise BrokenSettings(
                f"{path} holds {key} and {file.why_readable}",
                f"Take the right to read it from others (chmod 600), or write a reference, e.g. {key}: ${{env:NAME}}.",
            )
    return str(path), tree


def _config_folder() -> Path:
    base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    if os.name == "nt":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    return base / "goat-mcp"


def _secrets_in(tree: Mapping[str, Any], above: str = "") -> list[tuple[str, str]]:
    """The secrets that stand in a file themselves, by key."""
    found: list[tuple[str, str]] = []
    for name, value in tree.items():
        key = f"{above}{name}"
        if isinstance(value, dict):
            found += _secrets_in(cast("dict[str, Any]", value), f"{key}.")
        elif name in SECRET_NAMES and value:
            found.append((key, str(value)))
    return found


def _project_say(
    tree: Mapping[str, Any], config_file: Path | None, state: StateDirectory, origin: SettingsOrigin
) -> ProjectSay | None:
    """What the settings file of the workspace's first directory may say."""
    folder = _first_directory(tree)
    if folder is None or not os.path.lexists(folder / FILE_NAME):
        return None
    from goat_mcp.trust.project import ProjectSay, project_say
    from goat_mcp.trust.settings_file import BrokenFile
    from goat_mcp.trust.store import TrustStore

    store = TrustStore(state)
    try:
        say = project_say(folder, store, path_keys())
        if say is None or (config_file is not None and config_file.resolve() == say.file):
            return None
        _check_rules(say)
    except BrokenFile as broken:
        raise BrokenSettings(str(broken), "Mend the file, or delete it, and start again.") from None
    origin.notices += store.problems
    if config_file is None:
        return say
    notice = f"{say.file}: only what it denies is in force, because --config names another file"
    return ProjectSay(say.file, denials=say.denials, notice=notice if say.tree or say.notice else "")


def _check_rules(say: ProjectSay) -> None:
    """Raises `BrokenSettings` for a rule of a project's that nobody understands."""
    from goat_mcp.permissions.rules import BrokenRule, RuleSet

    try:
        RuleSet.parse(deny=say.denials.get("permissions.deny", ()))
    except BrokenRule as broken:
        raise BrokenSettings(f"{say.file}: permissions.deny: {broken}", "Mend the rule and start again.") from None


def _first_directory(tree: Mapping[str, Any]) -> Path | None:
    """Where the workspace is, as far as it is known before a client has come."""
    named = _as_list(tree.get("workspace")) or default_roots()
    first = named[0] if named else None
    return Path(first).expanduser().absolute() if isinstance(first, str | Path) and str(first) else None


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
    """A value that is wrong, unless it is or may hold a secret (a key, a URL with a password or a query)."""
    if key.rpartition(".")[2] in SECRET_NAMES or _URL_WITH_SECRET.search(str(value)):
        return f"a {type(value).__name__} that is not shown"
    return f"{Redactor().text(repr(value)):.80}"


def _nearest(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, setting_keys(), n=1)
    return f"; did you mean {near[0]}?" if near else "; known are " + ", ".join(setting_keys())


def setting_keys() -> list[str]:
    """Every setting's key, dots as levels."""
    return [key for key, _ in _fields_below(Settings, "")]


def path_keys() -> frozenset[str]:
    """The settings that hold paths."""
    return frozenset(key for key, annotation in _fields_below(Settings, "") if _holds_path(annotation))


def _holds_path(annotation: Any) -> bool:
    return annotation is Path or any(_holds_path(inner) for inner in get_args(annotation))


def _fields_below(part: type[SettingsPart], prefix: str) -> Iterator[tuple[str, Any]]:
    for name, found in part.model_fields.items():
        below = found.annotation
        if isinstance(below, type) and issubclass(below, SettingsPart):
            yield from _fields_below(below, f"{prefix}{name}.")
        else:
            yield prefix + name, below
