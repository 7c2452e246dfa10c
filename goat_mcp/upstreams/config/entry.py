"""One upstream as configured: what to launch or call and in which folder, how its tools are named and bounded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from goat_mcp.commands.sandbox.options import SandboxOptions
from goat_mcp.core.calling_client import RootsOf
from goat_mcp.core.names import NAME_CAP, SEPARATOR, UPSTREAM_PREFIX
from goat_mcp.core.spec import ToolExample
from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.status import ReasonCode

if TYPE_CHECKING:  # loaded when a process is started, and by the few entries that have such keys
    from goat_mcp.processes.launch import Confined
    from goat_mcp.upstreams.config.oauth_keys import OAuthOptions


DEFAULT_TIMEOUT_S = 60.0
DEFAULT_CONCURRENCY = 16
ShareSetting = Literal["named", "stateless"]
"""Whose process all sessions share: entries that say so, or also those without a word that are known to speak the
stateless era."""
SERVER_REQUESTS = ("elicitation", "roots", "sampling")
DEFAULT_ALLOW = frozenset({"elicitation", "roots"})
"""Sampling spends the user's model on whatever an upstream wants, so it waits for the user's word (R-UP-8)."""


@dataclass(frozen=True)
class StdioLaunch:
    """How to start an upstream as a child process."""

    command: str
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    cwd: str | None = None
    sandbox: SandboxOptions | None = None
    """None: it runs as the user, as everything else that the user starts."""


@dataclass(frozen=True)
class HttpEndpoint:
    """Where an upstream listens."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    oauth: OAuthOptions | None = None
    is_oauth_off: bool = False
    workspace: str = ""
    """Whose login is used, if each workspace has its own. Set when it is connected to."""

    @property
    def has_workspace_logins(self) -> bool:
        """Whether each workspace has a login of its own."""
        return self.oauth is not None and self.oauth.account == "workspace"

    @property
    def may_log_in(self) -> bool:
        """Whether a login is of use: credentials among the headers are the user's choice and stay (AUT-3)."""
        return not self.is_oauth_off and all(name.lower() != "authorization" for name in self.headers)


@dataclass(frozen=True)
class ToolDocs:
    """What people can read of a tool, beside its description."""

    long: str = ""
    examples: tuple[ToolExample, ...] = ()


@dataclass(frozen=True, kw_only=True)
class UpstreamConfig:
    """One upstream. `name` is the user's key, `server` the part of tool names made of it."""

    name: str
    server: str
    target: StdioLaunch | HttpEndpoint
    naming: str = "qualified"
    timeout_s: float = DEFAULT_TIMEOUT_S
    start_timeout_s: float | None = None
    """How long its start may take; None for what suits its launch (`launchers.start_timeout_s`)."""
    idle_timeout_s: float | None = None
    concurrency: int = DEFAULT_CONCURRENCY
    start: Literal["lazy", "eager"] = "lazy"
    trust_annotations: bool = False
    sanitize: bool = False
    """Whether what hides or acts in its results is made visible, too (R-UP-7)."""
    input_check: Literal["off", "strict"] = "strict"
    output_check: Literal["off", "warn", "strict"] = "warn"
    pin: Literal["tofu", "strict", "off"] = "tofu"
    """Whether first sights are trusted, wait as changes do, or nothing is pinned (R-UP-6)."""
    enabled_tools: tuple[str, ...] | None = None
    """The only ones of its tools that anybody may use, by its own names; None for all."""
    disabled_tools: tuple[str, ...] = ()
    docs: Mapping[str, ToolDocs] = field(default_factory=dict[str, ToolDocs], hash=False)
    """What the user has to say of its tools to people, by its own names."""
    name_cap: int = NAME_CAP

    def shows(self, tool: str) -> bool:
        """Whether the user wants this one of its tools."""
        return (self.enabled_tools is None or tool in self.enabled_tools) and tool not in self.disabled_tools

    allow: frozenset[str] = DEFAULT_ALLOW
    """What it may ask of a client: elicitation, roots, sampling."""
    scope: Literal["workspace", "session"] = "workspace"
    """Who shares one connection: all clients of a principal with the same capabilities, or nobody."""
    share: bool | None = None
    """Whether all sessions of the user share one process; None where the settings decide."""

    @property
    def source(self) -> str:
        """The registry's name for this upstream's tools."""
        return f"upstream:{self.server}"

    @property
    def prefix(self) -> str:
        """What exposed names start with (NAM-3)."""
        if self.naming == "flat":
            return ""
        if self.naming == "qualified":
            return f"{UPSTREAM_PREFIX}{self.server}{SEPARATOR}"
        return f"{self.naming}{SEPARATOR}"

    @property
    def login_step(self) -> str:
        """What a person can do where it wants credentials."""
        if not isinstance(self.target, HttpEndpoint) or not self.target.may_log_in:
            return "The operator must put valid credentials into the headers of this upstream."
        import shlex

        command = f"goat-mcp auth login {shlex.quote(self.name)}"
        oauth = self.target.oauth
        if oauth is not None and not oauth.needs_a_person:
            return f"The operator must correct `oauth` in the entry of this upstream, and can try it with: {command}"
        return f"The user can log in with: {command}" + (" --workspace DIR" if self.target.has_workspace_logins else "")

    @property
    def fingerprint(self) -> str:
        """Identifies what is launched or called. Values of variables and headers, often secrets, are not part of it."""
        target = self.target
        if isinstance(target, StdioLaunch):
            facts: list[Any] = ["stdio", target.command, list(target.args), sorted(target.env), target.cwd]
        else:
            facts = ["http", target.url, sorted(target.headers)]
        return hashlib.sha256(json.dumps([self.server, *facts]).encode("utf-8", "surrogatepass")).hexdigest()


WORKSPACE = "${workspace}"


def needs_workspace(target: StdioLaunch | HttpEndpoint) -> bool:
    """Whether the entry names the caller's workspace: each gets a process, or a connection, of its own then."""
    if not isinstance(target, StdioLaunch):
        return target.has_workspace_logins
    return any(WORKSPACE in text for text in (target.command, *target.args, *target.env.values(), target.cwd or ""))


def follows_client(target: StdioLaunch | HttpEndpoint) -> bool:
    """Whether it says nothing of a folder: a handshake client that tells its roots has a process in the first."""
    return isinstance(target, StdioLaunch) and target.cwd is None and not needs_workspace(target)


def first_existing(roots: Sequence[Path]) -> Path | None:
    """The first of a client's roots that can be worked in: it may be on another machine."""
    for root in roots:
        with suppress(OSError):
            if root.is_dir():
                return root
    return None


def in_workspace(
    target: StdioLaunch | HttpEndpoint, root: Path | None, *, is_shared: bool = False
) -> StdioLaunch | HttpEndpoint:
    """As it is started for a client whose workspace is `root`. Raises `StartFailure` where it needs one that is not.

    `is_shared`: it is for all workspaces, unless it names them. It works in the home directory if it names no folder.
    """
    if not needs_workspace(target):
        if not isinstance(target, StdioLaunch):
            return target
        if is_shared and target.cwd is None:
            return replace(target, cwd=str(Path.home()))
        return replace(target, cwd=str(root or _elsewhere())) if target.cwd is None else target
    if root is None:
        said = WORKSPACE if isinstance(target, StdioLaunch) else "oauth.account: workspace"
        raise StartFailure(
            ReasonCode.NO_WORKSPACE, f"its entry says {said}, and neither the client nor the settings name one"
        )
    if not isinstance(target, StdioLaunch):
        return replace(target, workspace=str(root))

    def named(text: str) -> str:
        return text.replace(WORKSPACE, str(root))

    return replace(
        target,
        command=named(target.command),
        args=tuple(map(named, target.args)),
        env={name: named(value) for name, value in target.env.items()},
        cwd=named(target.cwd) if target.cwd is not None else str(root),
    )


def _elsewhere() -> Path:
    """Where we were started ourselves, as a host without a workspace does it."""
    here = Path.cwd()
    return Path.home() if here == Path(here.anchor) else here


RootOf = Callable[[], Path | None]
"""The workspace that one connection is for."""

Confine = Callable[[SandboxOptions, Path], "Awaitable[Confined | None]"]
"""Finds the sandbox for an entry that wants one, started in this directory; None: it runs without after all. Raises
`ToolError`."""


def start_root(workspace: RootOf, roots: RootsOf) -> Path | None:
    """The folder that a connection's upstream is started in: the workspace it is for, or else the first root."""
    return workspace() or next(iter(roots(False)), None)


def roots_in(workspace: RootOf, roots: RootsOf, client_has_some: bool) -> Sequence[Path]:
    """The roots that one connection's upstream hears of: the workspace it is for, where it has one."""
    root = workspace()
    return roots(client_has_some) if root is None else (root,)
