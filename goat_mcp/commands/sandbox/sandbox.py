"""Chooses the confinement of commands and upstreams by a real trial, once, when first needed (R-PROC-1)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import anyio
import anyio.to_thread

from goat_mcp.commands.sandbox.confinement import (
    Bounds,
    Confinement,
    ConfinementName,
    Job,
    Launch,
    ProxyAccess,
)
from goat_mcp.commands.sandbox.options import Network, SandboxMode, SandboxOptions
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.policy import SandboxPolicy, with_unchanged
from goat_mcp.commands.sandbox.protected_paths import HiddenSearch
from goat_mcp.commands.sandbox.temporary_folders import SessionFolders
from goat_mcp.core import platform
from goat_mcp.core.errors import ErrorCode, ToolError

if TYPE_CHECKING:
    from goat_mcp.commands.sandbox.domain_proxy import DomainProxy


@dataclass(frozen=True)
class SandboxState:
    """`name` is the confinement of a command that runs now; `reason` says why it is `none` against the settings."""

    name: ConfinementName | Literal["none"]
    wanted: SandboxMode
    reason: str = ""

    @property
    def confined(self) -> bool:
        return self.name != "none"

    @property
    def unsandboxed(self) -> bool:
        """Wanted but unavailable: such a command at least asks (R-PROC-1)."""
        return self.wanted is not SandboxMode.OFF and not self.confined


_KERNEL_FILES = (Path("/proc"), Path("/sys"))


@dataclass(frozen=True)
class Choice:
    """The result of the trials. `passed_over` says why no confinement, or no better one, is used."""

    confinement: Confinement | None
    passed_over: str = ""


@dataclass(frozen=True)
class ConfinedProcess:
    """One process's confinement, complete but for its arguments. `reports`: what dead processes left behind."""

    confinement: Confinement
    bounds: Bounds
    directory: Path
    reports: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.confinement.name

    @property
    def has_process_namespace(self) -> bool:
        return self.confinement.has_process_namespace

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know: paths that are not protected, and what dead processes left."""
        missed = (f"not all nested repositories and settings could be protected: {why}" for why in self.bounds.missed)
        return (*self.reports, *missed)

    def launch(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        marker: Mapping[str, str],
        pass_fds: Sequence[int] = (),
    ) -> Launch:
        """How to start it. Raises `OSError` if a path of its bounds cannot be opened."""
        job = Job(
            arguments=tuple(arguments),
            directory=self.directory,
            environment=environment,
            bounds=self.bounds,
            marker=marker,
            pass_fds=tuple(pass_fds),
        )
        return self.confinement.launch(job)


class Sandbox:
    """Confines commands and upstreams before they start. For one event loop.

    Args:
        options: the settings.
        policy: what commands may reach.
        runs_unasked: whether commands of a session and principal may run without asking a person (a mode, a rule,
            HTTP): then `auto` is the default.
        confinements: the ways to confine, best first.
        temporary: the sessions' temporary folders.
        hidden: finds what the user's rules let nobody read; None if there are no such rules.
        unchanged: finds what they let no command change, in the same way.
    """

    def __init__(
        self,
        options: SandboxOptions,
        policy: SandboxPolicy,
        *,
        runs_unasked: Callable[[str, str], bool],
        confinements: Callable[[], Sequence[Confinement]],
        placeholders: Callable[[], Placeholders],
        temporary: SessionFolders,
        hidden: HiddenSearch | None = None,
        unchanged: HiddenSearch | None = None,
    ) -> None:
        self.options = options
        self._policy = policy
        self._runs_unasked = runs_unasked
        self._confinements = confinements
        self._placeholders = placeholders
        self._temporary = temporary
        self._hidden = hidden
        self._unchanged = unchanged
        self._choice: Choice | None = None
        self._choosing = threading.Lock()
        self._proxies: dict[tuple[str, ...], tuple[DomainProxy, ProxyAccess]] = {}
        self._starting_proxy = anyio.Lock()
        self._cleaned_up = False
        self._reports: tuple[str, ...] = ()

    def wanted(self, session_key: str = "", principal: str = "") -> SandboxMode:
        """The mode for a session's commands: the setting, else `auto` if they may run unasked."""
        if self.options.sandbox is not None:
            return self.options.sandbox
        return SandboxMode.AUTO if self._runs_unasked(session_key, principal) else SandboxMode.OFF

    async def state(self, session_key: str = "", principal: str = "") -> SandboxState:
        """What a command of the session would run in now. The first time this makes a trial, some 20 ms."""
        wanted = self.wanted(session_key, principal)
        if wanted is SandboxMode.OFF:
            return SandboxState("none", wanted)
        choice = await self._chosen()
        return _state(choice, wanted)

    def known_state(self, session_key: str = "", principal: str = "") -> SandboxState | None:
        """`state` without a trial; None before the first trial."""
        wanted = self.wanted(session_key, principal)
        if wanted is SandboxMode.OFF:
            return SandboxState("none", wanted)
        return None if self._choice is None else _state(self._choice, wanted)

    def why_unconfined(self) -> str:
        """Why a command that is about to run unasked would have no sandbox against the settings.

        Empty if it would have one, or if the settings want none. The first time this makes a trial, some 20 ms.
        """
        if self.options.sandbox is SandboxMode.OFF:
            return ""
        choice = self._choose()
        return "" if choice.confinement is not None else choice.passed_over

    def keeps_commands_inside(self) -> bool:
        """Whether commands that run unasked reach nothing outside the workspace, and no network. Makes a trial, too."""
        options = self.options
        if options.sandbox is SandboxMode.OFF or options.sandbox_network is not Network.DENY or options.sandbox_write:
            return False
        choice = self._choose()
        return choice.confinement is not None and not choice.confinement.limits

    @property
    def limits(self) -> tuple[str, ...]:
        """What the chosen confinement does not protect, in words; empty before the first trial."""
        choice = self._choice
        if choice is None or choice.confinement is None:
            return ()
        return (*((choice.passed_over,) if choice.passed_over else ()), *choice.confinement.limits)

    def clean_up(self) -> None:
        """Remove what the commands of killed processes left in workspaces. The next command reports what was set aside.

        Blocking; for any thread.
        """
        with self._choosing:
            self._clean_up_once()

    def _clean_up_once(self) -> None:
        if not self._cleaned_up:
            self._cleaned_up = True
            self._reports = self._placeholders().clean_up()

    def start_failed(self) -> None:
        """A confinement that worked failed: the next call makes a new trial."""
        self._choice = None

    async def confine_command(
        self, directory: Path, *, session_key: str = "", principal: str = "", writes_below: str = ""
    ) -> ConfinedProcess | None:
        """The confinement of one command; None if it runs without. Raises `ToolError(SANDBOX)` if one is required and
        there is none."""
        confinement = await self._confinement_for(self.wanted(session_key, principal))
        if confinement is None:
            return None
        proxy = await self._proxy_for(self.options)

        def bounds_of() -> Bounds:
            bounds = self._policy.of(self.options, proxy, writes_below=writes_below)
            bounds = replace(bounds, temporary=self._temporary.of(principal, session_key))
            if not confinement.protects_paths:
                return bounds
            if self._hidden is not None:
                visible = tuple(path for path in (*bounds.writable, *bounds.readable) if path.is_dir())
                bounds = replace(bounds, hidden=(*bounds.hidden, *self._hidden.below(visible)))
            if self._unchanged is not None:
                writable = tuple(path for path in bounds.writable if path.is_dir())
                bounds = with_unchanged(bounds, self._unchanged.below(writable))
            return bounds

        try:
            bounds = await anyio.to_thread.run_sync(bounds_of)
        except OSError as problem:
            raise _unavailable(f"no folder for temporary files: {problem}") from problem
        reports, self._reports = self._reports, ()
        return replace(self._confined(confinement, bounds, directory), reports=reports)

    async def confine_upstream(self, options: SandboxOptions, directory: Path) -> ConfinedProcess | None:
        """The confinement of a stdio upstream by the options of its entry. Raises `ToolError(SANDBOX)`."""
        confinement = await self._confinement_for(options.sandbox or SandboxMode.OFF)
        if confinement is None:
            return None
        proxy = await self._proxy_for(options)
        bounds = await anyio.to_thread.run_sync(lambda: self._policy.of_upstream(options, proxy, directory))
        return self._confined(confinement, bounds, directory)

    def _confined(self, confinement: Confinement, bounds: Bounds, directory: Path) -> ConfinedProcess:
        for path in bounds.writable:
            if path.parent == path:
                raise _unavailable(f"{path} is a root of the workspace, and nothing can be kept from it")
            if any(path.is_relative_to(one) for one in _KERNEL_FILES):
                raise _unavailable(
                    f"{path} is a part of the kernel's settings, which no command in a sandbox may write"
                )
        visible = (*bounds.writable, *bounds.readable)
        if not confinement.protects_paths:
            for path in bounds.hidden:
                if any(path.is_relative_to(one) for one in visible):
                    raise _unavailable(
                        f"{path} is to be hidden and lies in a directory in reach, which {confinement.name} cannot do"
                    )
        return ConfinedProcess(confinement, bounds, directory)

    async def _confinement_for(self, wanted: SandboxMode) -> Confinement | None:
        if wanted is SandboxMode.OFF:
            return None
        choice = await self._chosen()
        if choice.confinement is None and wanted is SandboxMode.REQUIRED:
            raise _unavailable(choice.passed_over)
        return choice.confinement

    async def _chosen(self) -> Choice:
        return self._choice or await anyio.to_thread.run_sync(self._choose)

    def _choose(self) -> Choice:
        with self._choosing:
            if self._choice is None:
                self._clean_up_once()
                self._choice = _try(self._confinements())
            return self._choice

    async def _proxy_for(self, options: SandboxOptions) -> ProxyAccess | None:
        if options.sandbox_network is not Network.DOMAINS:
            return None
        async with self._starting_proxy:
            if options.sandbox_domains not in self._proxies:
                from goat_mcp.commands.sandbox.domain_proxy import DomainProxy

                proxy = DomainProxy(options.sandbox_domains)
                self._proxies[options.sandbox_domains] = proxy, await proxy.start()
            return self._proxies[options.sandbox_domains][1]

    async def close(self) -> None:
        """Stop the proxies of running sandboxes, and remove temporary files."""
        for proxy, _ in self._proxies.values():
            await proxy.stop()
        self._proxies.clear()
        await anyio.to_thread.run_sync(self._temporary.close)


def _try(confinements: Sequence[Confinement]) -> Choice:
    reasons: list[str] = []
    for confinement in confinements:
        if not (reason := confinement.missing()):
            return Choice(confinement, "; ".join(reasons))
        reasons.append(reason)
    return Choice(None, "; ".join(reasons) or _why_none())


def _why_none() -> str:
    if platform.SYSTEM == "windows":
        return "goat-mcp has no sandbox on Windows, only in WSL 2"
    return f"there is none for {platform.SYSTEM}"


def _state(choice: Choice, wanted: SandboxMode) -> SandboxState:
    if choice.confinement is None:
        return SandboxState("none", wanted, choice.passed_over)
    return SandboxState(choice.confinement.name, wanted)


def _unavailable(reason: str) -> ToolError:
    return ToolError(
        ErrorCode.SANDBOX,
        f"sandbox unavailable: {reason}",
        f"Nothing was run. Tell the user; they can {remedy()}, or set sandbox to auto or off.",
    )


_REMEDIES: Mapping[platform.SystemName, str] = {
    "linux": "install bubblewrap",
    "macos": "use a system whose /usr/bin/sandbox-exec works",
    "windows": "run goat-mcp in WSL 2",
}


def remedy() -> str:
    """What the user can do about a missing sandbox on this system: `install bubblewrap`."""
    return _REMEDIES[platform.SYSTEM]
