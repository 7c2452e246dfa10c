"""Which confinement commands and upstreams run in: chosen by a real trial, once, when first needed (R-PROC-1)."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from goat_mcp.commands.sandbox.confinement import Bounds, Confinement, Job, Launch, ProxyDoor
from goat_mcp.commands.sandbox.hidden_search import HiddenSearch
from goat_mcp.commands.sandbox.options import Network, SandboxOptions, SandboxWish
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.policy import SandboxPolicy
from goat_mcp.commands.sandbox.session_folders import SessionFolders
from goat_mcp.commands.sandbox.state import SandboxState
from goat_mcp.core.errors import ErrorCode, ToolError

if TYPE_CHECKING:  # loaded when somebody wants named domains
    from goat_mcp.commands.sandbox.domain_proxy import DomainProxy

_KERNELS = (Path("/proc"), Path("/sys"))


@dataclass(frozen=True)
class Choice:
    """What the trials gave: a confinement, or why there is none. `passed_over` says why a better one is not used."""

    confinement: Confinement | None
    passed_over: str = ""


@dataclass(frozen=True)
class ConfinedProcess:
    """One process's confinement, everything decided but its arguments."""

    confinement: Confinement
    bounds: Bounds
    directory: Path

    @property
    def name(self) -> str:
        return self.confinement.name

    @property
    def has_process_namespace(self) -> bool:
        return self.confinement.has_process_namespace

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know of what it does not keep."""
        return tuple(
            f"not all nested repositories and settings could be protected: {why}" for why in self.bounds.missed
        )

    def launch(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        marker: Mapping[str, str],
        pass_fds: Sequence[int] = (),
    ) -> Launch:
        """How to start it. Raises `OSError` where a path that it may reach cannot be opened."""
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
    """Asked before anything is started. For one event loop.

    Args:
        options: the settings.
        reach: what commands may reach.
        runs_unasked: whether commands of a session and principal may run without a person's word (a mode, a rule,
            HTTP): then `auto` is wanted where the setting is silent.
        confinements: the ways to confine, best first.
        temporary: where sessions have their temporary files.
        hidden: finds what the user's rules let nobody read; None where there are no such rules.
        unchanged: finds what they let no command change, in the same way.
    """

    def __init__(
        self,
        options: SandboxOptions,
        reach: SandboxPolicy,
        *,
        runs_unasked: Callable[[str, str], bool],
        confinements: Callable[[], Sequence[Confinement]],
        placeholders: Callable[[], Placeholders],
        temporary: SessionFolders,
        hidden: HiddenSearch | None = None,
        unchanged: HiddenSearch | None = None,
    ) -> None:
        self.options = options
        self._reach = reach
        self._runs_unasked = runs_unasked
        self._confinements = confinements
        self._placeholders = placeholders
        self._temporary = temporary
        self._hidden = hidden
        self._unchanged = unchanged
        self._choice: Choice | None = None
        self._choosing = threading.Lock()
        self._doors: dict[tuple[str, ...], tuple[DomainProxy, ProxyDoor]] = {}
        self._opening_door = anyio.Lock()
        self._cleared_up = False

    def wanted(self, session_key: str = "", principal: str = "") -> SandboxWish:
        """What is wanted for a session's commands: the setting, else `auto` where they may run unasked."""
        if self.options.sandbox is not None:
            return self.options.sandbox
        return SandboxWish.AUTO if self._runs_unasked(session_key, principal) else SandboxWish.OFF

    async def state(self, session_key: str = "", principal: str = "") -> SandboxState:
        """What a command of the session would run in now. The first time that something is wanted this tries it out,
        some 20 ms."""
        wanted = self.wanted(session_key, principal)
        if wanted is SandboxWish.OFF:
            return SandboxState("none", wanted)
        choice = await self._chosen()
        return _state(choice, wanted)

    def known_state(self, session_key: str = "", principal: str = "") -> SandboxState | None:
        """`state` without a trial; None where that is still to come."""
        wanted = self.wanted(session_key, principal)
        if wanted is SandboxWish.OFF:
            return SandboxState("none", wanted)
        return None if self._choice is None else _state(self._choice, wanted)

    def why_unconfined(self) -> str:
        """For a command that is about to run unasked: why it would do so without a sandbox although one is wanted.

        Empty where it would run in one, or the settings want none. The first time it tries that out, some 20 ms.
        """
        if self.options.sandbox is SandboxWish.OFF:
            return ""
        choice = self._choose()
        return "" if choice.confinement is not None else choice.passed_over

    @property
    def limits(self) -> tuple[str, ...]:
        """What the chosen confinement does not cover, in words; empty before the first trial."""
        choice = self._choice
        if choice is None or choice.confinement is None:
            return ()
        return (*((choice.passed_over,) if choice.passed_over else ()), *choice.confinement.limits)

    def start_failed(self) -> None:
        """A confinement that worked does not any more: the next call tries again."""
        self._choice = None

    async def confine_command(
        self, directory: Path, *, session_key: str = "", principal: str = "", writes_below: str = ""
    ) -> ConfinedProcess | None:
        """The confinement of one command; None where it runs without. Raises `ToolError(SANDBOX)` where one is
        required and there is none."""
        confinement = await self._confinement_for(self.wanted(session_key, principal))
        if confinement is None:
            return None
        door = await self._open_door(self.options)

        def bounds_of() -> Bounds:
            bounds = self._reach.of(self.options, door, writes_below=writes_below)
            bounds = replace(bounds, temporary=self._temporary.of(principal, session_key))
            if not confinement.has_process_namespace:
                return bounds
            if self._hidden is not None:
                in_view = tuple(path for path in (*bounds.writable, *bounds.readable) if path.is_dir())
                bounds = replace(bounds, hidden=(*bounds.hidden, *self._hidden.below(in_view)))
            if self._unchanged is not None:
                writable = tuple(path for path in bounds.writable if path.is_dir())
                bounds = replace(bounds, read_only=(*bounds.read_only, *self._unchanged.below(writable)))
            return bounds

        try:
            bounds = await anyio.to_thread.run_sync(bounds_of)
        except OSError as problem:
            raise _unavailable(f"no place for temporary files: {problem}") from problem
        return self._confined(confinement, bounds, directory)

    async def confine_upstream(self, options: SandboxOptions, directory: Path) -> ConfinedProcess | None:
        """The confinement of a stdio upstream by the options of its entry. Raises `ToolError(SANDBOX)`."""
        confinement = await self._confinement_for(options.sandbox or SandboxWish.OFF)
        if confinement is None:
            return None
        door = await self._open_door(options)
        bounds = await anyio.to_thread.run_sync(lambda: self._reach.of_upstream(options, door, directory))
        return self._confined(confinement, bounds, directory)

    def _confined(self, confinement: Confinement, bounds: Bounds, directory: Path) -> ConfinedProcess:
        for path in bounds.writable:
            if path.parent == path:
                raise _unavailable(f"{path} is a root of the workspace, and nothing can be kept from it")
            if any(path.is_relative_to(one) for one in _KERNELS):
                raise _unavailable(
                    f"{path} is a part of the kernel's settings, which no command in a sandbox may write"
                )
        in_view = (*bounds.writable, *bounds.readable)
        if not confinement.has_process_namespace:
            for path in bounds.hidden:
                if any(path.is_relative_to(one) for one in in_view):
                    raise _unavailable(
                        f"{path} is to be hidden and lies in a directory in reach, which needs bubblewrap"
                    )
        return ConfinedProcess(confinement, bounds, directory)

    async def _confinement_for(self, wanted: SandboxWish) -> Confinement | None:
        if wanted is SandboxWish.OFF:
            return None
        choice = await self._chosen()
        if choice.confinement is None and wanted is SandboxWish.REQUIRED:
            raise _unavailable(choice.passed_over)
        return choice.confinement

    async def _chosen(self) -> Choice:
        return self._choice or await anyio.to_thread.run_sync(self._choose)

    def _choose(self) -> Choice:
        with self._choosing:
            if self._choice is None:
                if not self._cleared_up:
                    self._cleared_up = True
                    self._placeholders().clear_up()
                self._choice = _try(self._confinements())
            return self._choice

    async def _open_door(self, options: SandboxOptions) -> ProxyDoor | None:
        if options.sandbox_network is not Network.DOMAINS:
            return None
        async with self._opening_door:
            if options.sandbox_domains not in self._doors:
                from goat_mcp.commands.sandbox.domain_proxy import DomainProxy

                proxy = DomainProxy(options.sandbox_domains)
                self._doors[options.sandbox_domains] = proxy, await proxy.start()
            return self._doors[options.sandbox_domains][1]

    async def close(self) -> None:
        """Close the ways out of running sandboxes; temporary files go."""
        for proxy, _ in self._doors.values():
            await proxy.stop()
        self._doors.clear()
        await anyio.to_thread.run_sync(self._temporary.close)


def _try(confinements: Sequence[Confinement]) -> Choice:
    reasons: list[str] = []
    for confinement in confinements:
        if not (reason := confinement.missing()):
            return Choice(confinement, "; ".join(reasons))
        reasons.append(reason)
    return Choice(None, "; ".join(reasons) or f"there is none for {sys.platform}")


def _state(choice: Choice, wanted: SandboxWish) -> SandboxState:
    if choice.confinement is None:
        return SandboxState("none", wanted, choice.passed_over)
    return SandboxState("bubblewrap" if choice.confinement.name == "bubblewrap" else "landlock", wanted)


def _unavailable(reason: str) -> ToolError:
    return ToolError(
        ErrorCode.SANDBOX,
        f"sandbox unavailable: {reason}",
        "Nothing was run. Tell the user; they can install bubblewrap, or set sandbox to auto or off.",
    )
