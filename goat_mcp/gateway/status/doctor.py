"""What `goat-mcp doctor` tries out (OBS-2): it connects to every upstream and lists it; it calls no tool."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial

import anyio
import anyio.to_thread

from goat_mcp.commands.sandbox.sandbox import SandboxState
from goat_mcp.gateway.status.findings import (
    Finding,
    launch_findings,
    state_findings,
    upstream_file_findings,
    upstream_findings,
)
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.config.entry import UpstreamConfig
from goat_mcp.upstreams.status import UpstreamState, UpstreamStatus
from goat_mcp.upstreams.upstreams import Upstreams

MAX_WAIT_S = 35.0
"""A little more than an upstream may take to start."""
OnExamined = Callable[[UpstreamStatus], None]


async def upstreams_examined(upstreams: Upstreams, only: Collection[str], on_examined: OnExamined) -> list[Finding]:
    """Connect to each, all at once, and list. `only` are names; none means all. `on_examined` is called for each."""

    async def examine(config: UpstreamConfig) -> None:
        await upstreams.relist(config.name, MAX_WAIT_S)
        on_examined(_status_of(upstreams, config.name))

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
    for name, detail in await anyio.to_thread.run_sync(upstreams.unusable_schemas, names):
        findings.append(
            Finding(
                id="input_schema_unused",
                about=name,
                detail=f"calls pass without a check of their arguments: {detail}",
                fix="Report it to whoever makes the server; the tool itself may work.",
            )
        )
    for status in statuses:
        if status.state is UpstreamState.REFUSED:
            on_examined(status)
    return [*findings, *(finding for config in chosen for finding in launch_findings(config))]


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
    """`silent` are hooks, by where they are written, and what is wrong with their matchers."""
    for origin, problem in silent:
        yield Finding(id="silent_hook", about=origin, detail=problem, fix="Correct the matcher, or take the hook away.")


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


def _file_findings(settings: Settings, state: StateDirectory) -> list[Finding]:
    return [
        *state_findings(state.path),
        *(finding for file in settings.upstreams for finding in upstream_file_findings(file.expanduser())),
    ]
