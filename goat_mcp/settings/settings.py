"""Everything a user can configure, in one tree of models, and its keys. Not here: where values come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, ValidationError

from goat_mcp.agents.options import AgentOptions
from goat_mcp.calls.approvals.options import ApprovalOptions
from goat_mcp.calls.audit.log import AuditSettings
from goat_mcp.calls.concurrency_limiter import IN_ALL, PER_PRINCIPAL
from goat_mcp.calls.hooks.settings import HookSettings
from goat_mcp.calls.observability.options import MetricsOptions, TracingOptions
from goat_mcp.calls.permissions.mode import Mode
from goat_mcp.calls.permissions.plan_approval import PlanOptions
from goat_mcp.catalog.filter import TOKEN_BUDGET, CatalogMode, ProfileName, ProfileOptions
from goat_mcp.catalog.schemas.dialects import DEFAULT_DIALECT, DialectName
from goat_mcp.commands.sandbox.options import SandboxOptions
from goat_mcp.commands.task_options import TaskOptions
from goat_mcp.core import suggestions
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.names import NAME_CAP
from goat_mcp.core.problem_words import demand_of
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.settings_part import Names, SettingsPart, default_part, one_or_many
from goat_mcp.core.spec import DEFAULT_TOOLSETS, OPTIONAL_TOOLSETS
from goat_mcp.files.settings import EditOptions, FileOptions, SearchLimits
from goat_mcp.processes.bash_options import BashOptions
from goat_mcp.processes.computing.script_options import CodeOptions
from goat_mcp.settings.identity import IdentitySettings
from goat_mcp.state.options import StateOptions
from goat_mcp.state.replicas.options import ReplicaOptions
from goat_mcp.state.trust import FILE_NAME, has_project_file
from goat_mcp.upstreams.config.entry import ShareSetting
from goat_mcp.web.options import WebOptions

if TYPE_CHECKING:  # loaded if there is such a file
    from goat_mcp.state.trust.project import ProjectSay

ENV_PREFIX = "GOAT_MCP_"
SECRET_NAMES = frozenset({"key", "previous_key", "token", "app_token", "password"})
URL_KEYS = frozenset({"state.url"})
"""Settings that are URLs with a password in them, perhaps."""


Paths = Annotated[tuple[Path, ...], BeforeValidator(one_or_many)]


class PermissionSettings(SettingsPart):
    """Rules such as `Bash(npm run *)` or `Read(./secrets/**)`; deny beats ask beats allow."""

    allow: Names = ()
    ask: Names = ()
    deny: Names = ()


class OutputSettings(SettingsPart):
    max_chars: int = Field(default=30_000, ge=1_000, le=1_000_000)
    structured: Literal["auto", "always"] = "auto"


def _with_defaults(toolsets: tuple[str, ...]) -> tuple[str, ...]:
    return (*DEFAULT_TOOLSETS, *toolsets) if toolsets and OPTIONAL_TOOLSETS.issuperset(toolsets) else toolsets


class CatalogSettings(SettingsPart):
    """Which tools there are. `allow` and `deny` hold tools, `mcp__SERVER`, `toolset:NAME` and `preset:NAME`.

    `toolsets` are all that are on; if they are optional ones of ours only, they are on beside the default ones.

    `mode`: whether upstream tools are listed (`full`), found by search (`search`), or the latter only where listing
    all would cost more than `token_budget` (`auto`); or whether all tools are for scripts of `run_script` and found by
    search (`code`). `always_listed` are those that are in the list all the same.

    `share`: whose process all sessions of the user share: upstreams whose entries say so (`named`), or also those that
    are known to speak 2026-07-28 (`stateless`).
    """

    allow: Names | None = None
    deny: Names = ()
    toolsets: Annotated[Names, AfterValidator(_with_defaults)] = DEFAULT_TOOLSETS
    presets: Mapping[str, Names] = {}
    mode: CatalogMode = "auto"
    token_budget: int = Field(default=TOKEN_BUDGET, ge=0)
    always_listed: Names = ()
    schema_dialect: DialectName = DEFAULT_DIALECT
    name_cap: int = Field(default=NAME_CAP, ge=32, le=128)
    share: ShareSetting = "named"


class LimitSettings(SettingsPart):
    concurrent_calls: int = Field(default=PER_PRINCIPAL, ge=1)
    concurrent_calls_in_all: int = Field(default=IN_ALL, ge=1)
    frame_bytes: int = Field(default=64 * 1024 * 1024, ge=1024)
    body_bytes: int = Field(default=4 * 1024 * 1024, ge=1024)
    sessions: int = Field(default=100, ge=1)
    connections: int = Field(default=512, ge=1)
    calls_per_s: float = Field(default=50.0, ge=0)
    header_deadline_s: float = Field(default=10.0, gt=0)


_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?::[0-9]{1,5})?\Z")


def _check_hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    lower = tuple(host.lower() for host in hosts)
    for host in lower:
        if not _HOST.match(host):
            raise ValueError(f"wants NAME or NAME:PORT as clients write it, without http://; got {host!r}")
    return lower


class HttpSettings(SettingsPart):
    """`hosts`: under which names clients reach `serve --http` beside its own address, as their requests' `Host` has
    them. A load balancer has such a name."""

    hosts: Annotated[Names, AfterValidator(_check_hosts)] = ()


class UiSettings(SettingsPart):
    """The web page at `/ui` of `serve --http`."""

    enabled: bool = True


SHORT_KEYS = {"approval": "approval.by"}
"""Settings that were one value once: that value is still understood in place of the levels."""


def with_long_form(value: Any) -> Any:
    return {"by": value} if isinstance(value, str) else value


class Settings(SandboxOptions):
    """One gateway's settings. A key that is not here is an error, with the nearest one named."""

    workspace: Paths = ()
    upstreams: Paths = ()
    manifests: Paths = ()
    skills: Paths = ()
    tools: Mapping[str, Mapping[str, Any]] = {}
    mode: Mode = Mode.DEFAULT
    approval: Annotated[ApprovalOptions, BeforeValidator(with_long_form)] = default_part()
    plan: PlanOptions = default_part()
    permissions: PermissionSettings = default_part()
    claude_settings: Paths = ()
    hooks: HookSettings = default_part()
    extensions: Names = ()
    output: OutputSettings = default_part()
    files: FileOptions = default_part()
    edit: EditOptions = default_part()
    bash: BashOptions = default_part()
    tasks: TaskOptions = default_part()
    search: SearchLimits = default_part()
    web: WebOptions = default_part()
    agent: AgentOptions = default_part()
    code: CodeOptions = default_part()
    catalog: CatalogSettings = default_part()
    profiles: Mapping[ProfileName, ProfileOptions] = {}
    profile: str = ""
    profile_of_client: Mapping[str, str] = {}
    audit: AuditSettings = default_part()
    state: StateOptions = default_part()
    limits: LimitSettings = default_part()
    http: HttpSettings = default_part()
    replica: ReplicaOptions = default_part()
    identity: IdentitySettings = default_part()
    metrics: MetricsOptions = default_part()
    tracing: TracingOptions = default_part()
    ui: UiSettings = default_part()
    log_level: Literal["debug", "info", "warning", "error"] = "warning"

    _origin: SettingsOrigin = PrivateAttr(default_factory=lambda: SettingsOrigin())

    def remember(self, origin: SettingsOrigin) -> None:
        """Take in where all this came from."""
        self._origin = origin

    def source_of(self, key: str) -> str:
        """Where the value of a setting came from: `flag`, `environment`, `project`, `file`, `default`."""
        return self._origin.sources.get(key, "default")

    @property
    def config_files(self) -> Sequence[Path]:
        """The files that values came from."""
        return (*self._origin.users_files, *self._origin.project_files)

    @property
    def notices(self) -> Sequence[str]:
        """What the user should know about their files, e.g. that a project's is not trusted."""
        return tuple(self._origin.notices)

    @property
    def default_upstreams(self) -> Path | None:
        """The file of upstreams that would count if it were there; None where it does, or others are named."""
        return self._origin.default_upstreams

    @property
    def default_manifests(self) -> Path | None:
        """The user's own directory of manifests, which need not be there; None where others are named."""
        return self._origin.default_manifests

    @property
    def contents(self) -> Mapping[Path, bytes]:
        """Files as the user trusted them. Whoever opens a file that a setting names takes these bytes instead."""
        return self._origin.contents

    @property
    def watched_files(self) -> Sequence[Path]:
        """Files whose change may change these settings, whether they are there or not; empty if nothing loads them."""
        return self._origin.watched_files if self._origin.load_again is not None else ()

    @property
    def project_files(self) -> Sequence[Path]:
        """Those of the files that belong to a project: of them only what the user trusts counts."""
        return self._origin.project_files

    def loaded_again(self, *, keeps_project: bool = False) -> Settings:
        """What the same flags, variables and files say now; of a project's file, what it said before if
        `keeps_project`. Raises `BrokenSettings`."""
        return self if self._origin.load_again is None else self._origin.load_again(keeps_project=keeps_project)

    def with_followed(self, read: Settings, keys: Collection[str]) -> Settings:
        """These settings with the values that `read` has for `keys`, and where those came from."""
        changed: dict[str, Any] = {}
        for key in sorted(keys):
            part, _, name = key.rpartition(".")
            if part:
                changed[part] = changed.get(part, getattr(self, part)).model_copy(
                    update={name: getattr(getattr(read, part), name)}
                )
            else:
                changed[name] = getattr(read, name)
        settings = self.model_copy(update=changed)
        before, now = self._origin, read._origin
        sources = {key: source for key, source in before.sources.items() if key not in keys}
        sources |= {key: source for key, source in now.sources.items() if key in keys}
        settings.remember(replace(now, sources=sources, contents={**before.contents, **now.contents}))
        return settings

    def overlooks_project(self, folder: Path) -> bool:
        """Whether a settings file lies in `folder` that was not there to be asked when these were loaded."""
        file = folder.resolve() / FILE_NAME
        return file not in self._origin.project_files and has_project_file(file.parent)


@dataclass
class SettingsOrigin:
    """Where settings came from, and what is odd about it. Of interest to people, and to whoever opens their files."""

    sources: dict[str, str] = field(default_factory=dict[str, str])
    notices: list[str] = field(default_factory=list[str])
    contents: Mapping[Path, bytes] = field(default_factory=dict[Path, bytes])
    project: ProjectSay | None = field(default=None, compare=False)
    project_folder: Path | None = field(default=None, compare=False)
    project_files: Sequence[Path] = ()
    users_files: Sequence[Path] = ()
    default_upstreams: Path | None = None
    default_manifests: Path | None = None
    watched_files: Sequence[Path] = field(default=(), compare=False)
    load_again: Callable[..., Settings] | None = field(default=None, compare=False)


class BrokenSettings(ToolError):
    """Settings that cannot be used; the message names the file or flag, the key, the value and what is wanted."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(ErrorCode.CONFIG, message, suggestion)


def setting_keys() -> list[str]:
    """Every setting's key, dots as levels."""
    return [key for key, _ in _fields_below(Settings, "")]


def setting_types() -> list[tuple[str, Any]]:
    """Every setting's key and the type of its value."""
    return list(_fields_below(Settings, ""))


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


_QUOTED = re.compile(r"'([^']*)'")
_URL_WITH_SECRET = re.compile(r"://(?:[^/]*@|[^?#]*\?)")


def settings_of(tree: Mapping[str, Any], origin: str) -> Settings:
    """The settings that `tree` holds, and nothing from elsewhere. `origin` names it in errors.

    Raises `BrokenSettings`.
    """
    try:
        return Settings.model_validate(tree)
    except ValidationError as invalid:
        raise _broken(invalid, origin) from None


def _broken(invalid: ValidationError, origin: str) -> BrokenSettings:
    lines = [f"{key}: {what}" for key, what in _problems_of(invalid)]
    return BrokenSettings(f"settings from {origin}:\n" + "\n".join(lines), "Fix these settings and start again.")


def _problems_of(invalid: ValidationError) -> Iterator[tuple[str, str]]:
    for error in invalid.errors(include_url=False):
        key = ".".join(str(part) for part in error["loc"])
        if error["type"] == "extra_forbidden":
            yield key, f"no such setting{nearest(key)}"
        else:
            near = suggestions.did_you_mean(
                str(error["input"]), _QUOTED.findall(error.get("ctx", {}).get("expected", ""))
            )
            yield key, "; ".join(filter(None, (f"{demand_of(error)}; got {_shown(key, error['input'])}", near)))


def problems_in(tree: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What of a tree is no setting: key, with the index of an item as its last level, and what is wanted."""
    try:
        Settings.model_validate(tree)
    except ValidationError as invalid:
        return list(_problems_of(invalid))
    return []


def _shown(key: str, value: Any) -> str:
    """A value that is wrong, unless it is or may hold a secret (a key, a URL with a password or a query)."""
    if key.rpartition(".")[2] in SECRET_NAMES or key in URL_KEYS or _URL_WITH_SECRET.search(str(value)):
        return f"a {type(value).__name__} that is not shown"
    return f"{Redactor().text(repr(value)):.80}"


def nearest(key: str) -> str:
    """What was meant by a setting that there is not: one of this name elsewhere, or one spelled alike."""
    keys = setting_keys()
    groups = dict.fromkeys(known.rpartition(".")[0] for known in keys if "." in known)
    elsewhere = [known for known in keys if known.endswith(f".{key.rpartition('.')[2]}")]
    near = suggestions.one_of(dict.fromkeys((*suggestions.nearest(key, [*keys, *groups]), *elsewhere)))
    return "; " + (near or f"known are {', '.join(keys)}")
