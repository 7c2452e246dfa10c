"""Bash, TaskOutput and TaskStop over one throw-away workspace, called as the pipeline calls them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from goat_mcp.commands.sandbox.factory import SandboxServices
from goat_mcp.commands.sandbox.factory import sandbox as make_sandbox
from goat_mcp.commands.sandbox.options import SandboxMode, SandboxOptions
from goat_mcp.commands.tasks import TaskManager
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.result import ToolResult, error_result
from goat_mcp.files.workspace import Workspace
from goat_mcp.files.workspace.protected import protected_reason
from goat_mcp.processes.bash_options import BashOptions
from goat_mcp.processes.environment import CommandEnvironment, LoginPath
from goat_mcp.processes.pids_cgroup import PidsCgroups
from goat_mcp.processes.process_guard import ProcessGuard
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.sessions import Sessions
from goat_mcp.state.spill import SpillFiles
from goat_mcp.tools.bash import Bash
from goat_mcp.tools.task_output import TaskOutput
from goat_mcp.tools.task_stop import TaskStop
from tests.processes.processes import soon


class ShellBench:
    """`root` is the workspace; `state` the state directory beside it. Call `close` at the end."""

    def __init__(
        self,
        folder: Path,
        *,
        max_running: int = 32,
        options: BashOptions | None = None,
        auto_background_after_s: float = 45.0,
        sandbox: SandboxOptions | None = None,
        cgroups: PidsCgroups | None = None,
    ) -> None:
        self.root = folder.resolve() / "ws"
        self.root.mkdir(exist_ok=True)
        self.state = StateDirectory(folder / "state")
        spill = SpillFiles(self.state)
        self.workspace = Workspace(self.root, readable=(spill.folder,), lock_folder=folder / "locks")
        self.sessions = Sessions()
        self.guard = ProcessGuard()
        self.tasks = TaskManager(self.state, str(self.root), max_running=max_running)
        self.sandbox = make_sandbox(
            sandbox or SandboxOptions(sandbox=SandboxMode.OFF),
            SandboxServices(
                roots=lambda: self.workspace.roots,
                state=self.state,
                spill=lambda: spill.folder,
                runs_unasked=lambda session_key, principal: False,
                is_protected=lambda path: protected_reason(path, commits=True) is not None,
                run_at_the_end=self.guard.run_at_the_end,
            ),
        )
        self.bash = Bash(
            self.workspace,
            self.sessions,
            self.tasks,
            spill,
            self.guard,
            CommandEnvironment(LoginPath(shell="/bin/false")),
            options or BashOptions(auto_background_after_s=auto_background_after_s),
            sandbox=self.sandbox,
            cgroups=cgroups,
        )
        self.output = TaskOutput(self.tasks)
        self.stop = TaskStop(self.tasks)

    async def run(self, command: str, *, ctx: ToolContext | None = None, **more: Any) -> ToolResult:
        return await call(self.bash, ctx, command=command, **more)

    async def background(self, command: str, **more: Any) -> str:
        """Start a task; returns its id."""
        return task_id(await self.run(command, run_in_background=True, **more))

    async def read(self, task_id: str, *, ctx: ToolContext | None = None, **more: Any) -> ToolResult:
        return await call(self.output, ctx, task_id=task_id, **more)

    async def end(self, task_id: str, *, ctx: ToolContext | None = None) -> ToolResult:
        return await call(self.stop, ctx, task_id=task_id)

    async def until_printed(self, task_id: str, text: str) -> None:
        """Until a running task has printed so much. It is not read for that: what a client has read counts."""
        (file,) = (task.work.output_file for task in self.tasks.running() if task.id == task_id)
        assert file is not None
        assert await soon(lambda: file.read_text() == text), file.read_text()

    async def close(self) -> None:
        await self.tasks.stop_all()
        self.guard.close()


async def call(tool: Any, ctx: ToolContext | None = None, **arguments: Any) -> ToolResult:
    try:
        return await tool.execute(tool.validate(arguments), ctx or context())
    except ToolError as error:
        return error_result(error)


def context(**fields: Any) -> ToolContext:
    return replace(ToolContext(call_id="call"), **fields)


def task_id(result: ToolResult) -> str:
    assert result.facts is not None
    return str(result.facts["task_id"])


def fact(result: ToolResult, name: str) -> Any:
    assert result.facts is not None
    return result.facts[name]
