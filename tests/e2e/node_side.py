"""The Node half of the end-to-end tests: where it lives, whether it is there, and one run of a client in it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.state.file_lock import exclusive
from tests.e2e.goat import HttpGoat, Launch

FOLDER = Path(__file__).parent / "node"
MODULES = FOLDER / "node_modules"
INSTALL_TIMEOUT_S = 300
RUN_TIMEOUT_S = 90


@dataclass(frozen=True)
class Node:
    """A Node with the packages of `package.json` beside it."""

    program: str

    def server_command(self, package: str, *arguments: str) -> list[str]:
        """The command that starts an MCP server of ours to stand in front of."""
        entry = MODULES / "@modelcontextprotocol" / package / "dist" / "index.js"
        return [self.program, str(entry), *arguments]

    def session(
        self,
        client: str,
        era: str,
        target: Launch | HttpGoat,
        steps: Sequence[Mapping[str, Any]],
        answers: Mapping[str, Sequence[Mapping[str, Any]]] | None = None,
        name: str = "",
    ) -> Any:
        """Run the steps in one session of a TypeScript client; `client` is `v1` or `v2`.

        `answers` are given to the server's own requests, by method, in order; `name` is the client's.
        """
        job = {"era": era, "target": _target(target), "steps": list(steps), "answers": answers or {}, "name": name}
        return json.loads(self._run([str(FOLDER / f"client_{client}.mjs"), json.dumps(job)]))

    def inspect(self, target: Launch | HttpGoat, *arguments: str) -> Any:
        """One run of the MCP Inspector's command line, as a person would type it; its answer."""
        entry = MODULES / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
        if isinstance(target, HttpGoat):
            place = [target.url, "--transport", "http"]
            rest = [part for name, value in target.headers.items() for part in ("--header", f"{name}: {value}")]
        else:
            place = target.command
            rest = [part for name, value in _own_variables(target).items() for part in ("-e", f"{name}={value}")]
        # What follows a bare `--` goes to the server; the Inspector's own flags come before it.
        if isinstance(target, HttpGoat):
            command = [str(entry), "--cli", *place, *rest, *arguments]
        else:
            command = [str(entry), "--cli", *rest, *arguments, "--", *place]
        return json.loads(self._run(command))

    def run_script(self, script: Path, *arguments: str) -> str:
        """What a script prints that ends well."""
        return self._run([str(script), *arguments])

    def _run(self, arguments: Sequence[str]) -> str:
        run = subprocess.run(
            [self.program, *arguments], capture_output=True, text=True, timeout=RUN_TIMEOUT_S, cwd=FOLDER
        )
        assert run.returncode == 0, f"exit code {run.returncode}\n{run.stdout}\n{run.stderr}"
        return run.stdout


def find_node() -> Node:
    """The Node to test with, its packages installed. Skips the test, saying why, where there is none."""
    program = shutil.which("node")
    if program is None:
        pytest.skip("needs Node.js (no `node` on PATH): clients and servers from npm are not tested here")
    stamp = MODULES / ".ready"
    if not stamp.exists():
        _install(stamp)
    return Node(program)


def _install(stamp: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("needs npm (there is `node`, but no `npm` on PATH) to install the packages of tests/e2e/node")
    # Parallel test workers come here at the same time; one of them installs.
    with exclusive(FOLDER / "package.json"):
        if stamp.exists():
            return
        command = [npm, "install", "--silent", "--no-progress"]
        run = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S)
        assert run.returncode == 0, f"npm install failed in {FOLDER}:\n{run.stdout}{run.stderr}"
        stamp.touch()


def _target(target: Launch | HttpGoat) -> dict[str, Any]:
    if isinstance(target, HttpGoat):
        return {"url": target.url, "headers": target.headers}
    command, *arguments = target.command
    return {"command": command, "args": arguments, "env": target.environment, "cwd": str(target.workspace)}


def _own_variables(target: Launch) -> dict[str, str]:
    names = ("GOAT_MCP_STATE_DIR", "XDG_CONFIG_HOME", *target.variables)
    return {name: target.environment[name] for name in names}
