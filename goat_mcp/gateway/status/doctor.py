"""What is wrong with a gateway's surroundings (OBS-2): everything is connected to and listed, no tool is called."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from ipaddress import ip_address
from urllib.parse import urlsplit

import anyio
import anyio.to_thread

from goat_mcp.commands.sandbox.sandbox import SandboxState
from goat_mcp.gateway.status.file_findings import state_findings, upstream_file_findings
from goat_mcp.gateway.status.finding import Finding
from goat_mcp.gateway.status.unpinned import unpinned_package
from goat_mcp.gateway.status.upstream_findings import upstream_findings
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.config.entry import HttpEndpoint, StdioLaunch, UpstreamConfig
from goat_mcp.upstreams.status import UpstreamState, UpstreamStatus
from goat_mcp.upstreams.upstreams import Upstreams

MAX_WAIT_S = 35.0
"""A little more than an upstream may take to start."""
Told = Callable[[UpstreamStatus], None]


async def upstreams_examined(upstreams: Upstreams, only: Collection[str], told: Told) -> list[Finding]:
    """Connect to each, all at once, and list; `told` hears of each as it is done. `only` are names; none means all."""

    async def examine(config: UpstreamConfig) -> None:
        await upstreams.listed_anew(config.name, MAX_WAIT_S)
        told(_status_of(upstreams, config.name))

    chosen = [config for config in upstreams.configs if not only or config.name in only]
    async with anyio.create_task_group() as group:
        for config in chosen:
            group.start_soon(examine, config)
    # What arrives with the answers, as lines that are no messages, is in the status by now.
    statuses = [one for one in upstreams.status() if not only or one.name in only]
    findings = [finding for status in statuses for finding in upstream_findings(status)]
    names = [config.name for config in chosen]
    for name, detail in await anyio.to_thread.run_sync(upstreams.suspicious, names):
        findings.append(
            Finding(
                id="suspicious_definition",
                about=name,
                detail=detail,
                fix="Read it with `goat-mcp lock show NAME` before you trust the server.",
            )
        )
    for status in statuses:
        if status.state is UpstreamState.REFUSED:
            told(status)
    return [*findings, *(finding for config in chosen for finding in _launch_findings(config))]


async def surroundings_examined(settings: Settings, state: StateDirectory) -> list[Finding]:
    """The files, in a thread: there may be many."""
    return await anyio.to_thread.run_sync(partial(_file_findings, settings, state))


def sandbox_findings(state: SandboxState) -> Iterator[Finding]:
    """`state` after a trial."""
    if state.unsandboxed:
        yield Finding(
            id="no_sandbox",
            detail=f"commands run without a sandbox although the settings want one: {state.reason}",
            fix="Install bubblewrap, or set `sandbox: off` if that is what you want.",
            exit_code=1 if state.wanted == "required" else 0,
        )


def hook_findings(silent: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """`silent` are places of hooks, and what is wrong with their matchers."""
    for place, problem in silent:
        yield Finding(id="silent_hook", about=place, detail=problem, fix="Correct the matcher, or take the hook away.")


def ignored_keys(upstreams: Upstreams, only: Collection[str]) -> Iterator[Finding]:
    for problem in upstreams.problems:
        if not problem.is_fatal and (not only or problem.name in only):
            yield Finding(
                id=str(problem.reason_code),
                about=problem.name,
                detail=f"{problem.message} ({problem.file})",
                fix="Correct or remove the key.",
            )


def _status_of(upstreams: Upstreams, name: str) -> UpstreamStatus:
    return next(status for status in upstreams.status() if status.name == name and status.server)


def _launch_findings(config: UpstreamConfig) -> Iterator[Finding]:
    target = config.target
    if isinstance(target, StdioLaunch) and (package := unpinned_package(target)):
        yield Finding(
            id="unpinned_launch",
            about=config.name,
            detail=f"{target.command} fetches {package} in whatever version is newest when it starts",
            fix=f"Name the version you have looked at, e.g. {package.partition('@latest')[0] or package}"
            + ("==1.2.3" if "uv" in target.command or "pipx" in target.command else "@1.2.3"),
        )
    elif isinstance(target, HttpEndpoint) and target.headers and _is_in_the_clear(target.url):
        yield Finding(
            id="token_in_the_clear",
            about=config.name,
            detail=f"{target.url.partition('?')[0]} gets headers over http, where anybody on the way reads them",
            fix="Write https.",
        )


def _is_in_the_clear(url: str) -> bool:
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        is_here = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        is_here = False
    return parts.scheme == "http" and not is_here


def _file_findings(settings: Settings, state: StateDirectory) -> list[Finding]:
    return [
        *state_findings(state.path),
        *(finding for file in settings.upstreams for finding in upstream_file_findings(file.expanduser())),
    ]
