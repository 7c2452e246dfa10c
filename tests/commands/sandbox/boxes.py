"""Programs run in a real bubblewrap, as little around it as possible."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from goat_mcp.commands.sandbox.bubblewrap import Bubblewrap
from goat_mcp.commands.sandbox.confinement import Bounds, Job, Launch
from goat_mcp.commands.sandbox.options import SandboxOptions
from goat_mcp.commands.sandbox.placeholders import Placeholders
from goat_mcp.commands.sandbox.policy import PolicyPaths, SandboxPolicy
from goat_mcp.commands.sandbox.protected_paths import ExistingPaths
from goat_mcp.commands.sandbox.seccomp import Sockets, system_call_filter
from goat_mcp.files.workspace.protected import protected_reason

LIMIT_S = 60


@cache
def _missing() -> str:
    if sys.platform != "linux":
        return "bubblewrap is a part of Linux systems"
    return Bubblewrap(Placeholders(Path("/nonexistent"))).missing()


needs_bubblewrap = pytest.mark.skipif(bool(_missing()), reason=f"no bubblewrap: {_missing()}")


def is_protected(path: str) -> bool:
    return protected_reason(path, commits=True) is not None


@dataclass
class Box:
    """A workspace `root` and a private state directory beside it, below `folder`."""

    folder: Path
    options: SandboxOptions = field(default_factory=SandboxOptions)
    home: Path | None = None
    records: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()
        self.root = self.folder / "ws"
        self.state = self.folder / "state"
        self.notes = self.state / "sandbox"
        for made in (self.root, self.notes):
            made.mkdir(parents=True, exist_ok=True)
        self.placeholders = Placeholders(self.notes)
        self.confinement = Bubblewrap(self.placeholders, system_call_filter=lambda: system_call_filter(Sockets.NETWORK))

    def bounds(self, writes_below: str = "") -> Bounds:
        paths = PolicyPaths(
            roots=lambda: (self.root,), private=(self.state,), records=lambda: self.records, home=self.home
        )
        return SandboxPolicy(paths, is_protected, ExistingPaths(lambda: self.notes)).of(
            self.options, None, writes_below=writes_below
        )

    def job(self, script: str, bounds: Bounds | None = None, **environment: str) -> Job:
        return Job(
            arguments=("/bin/bash", "-c", script),
            directory=self.root,
            environment={"PATH": "/usr/bin:/bin", **environment},
            bounds=bounds or self.bounds(),
            marker={"MARK": "1"},
        )

    def start(self, job: Job, **popen: object) -> tuple[subprocess.Popen[str], Callable[[], tuple[str, ...]]]:
        launch = self.confinement.launch(job)
        return self.started(launch, **popen), launch.finish

    def started(self, launch: Launch, **popen: object) -> subprocess.Popen[str]:
        try:
            return subprocess.Popen[str](
                launch.arguments,
                env=launch.environment,
                cwd=launch.directory,
                pass_fds=launch.pass_fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
                **popen,  # type: ignore[arg-type]  # options of Popen
            )
        finally:
            for descriptor in launch.own_fds:
                os.close(descriptor)

    def run(self, script: str, bounds: Bounds | None = None, **environment: str) -> str:
        """What the script prints on both streams."""
        return self.end_of(self.confinement.launch(self.job(script, bounds, **environment)))

    def end_of(self, launch: Launch) -> str:
        process = self.started(launch)
        try:
            output, _ = process.communicate(timeout=LIMIT_S)
        finally:
            process.kill()
        self.said = launch.finish()
        return output


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
