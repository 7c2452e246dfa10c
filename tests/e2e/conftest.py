"""What the end-to-end tests share: a small workspace, ways to start goat-mcp in it, and Node where there is one."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.goat import HttpGoat, Launch, http_goat
from tests.e2e.litellm_proxy import litellm, litellm_running
from tests.e2e.node_side import Node, find_node
from tests.e2e.wire import Wire
from tests.quick_start import script_command

__all__ = ["litellm", "litellm_running"]

SERVERS = Path(__file__).parent / "servers"
# What a person would let run over HTTP without being asked; on stdio the host asks.
UNASKED = ("--mode", "bypassPermissions")


def fill(workspace: Path) -> Path:
    """A small project to work in."""
    (workspace / "src").mkdir(parents=True)
    (workspace / "src" / "greeting.py").write_text('def greet(name):\n    return f"Hello, {name}!"\n')
    (workspace / "notes.md").write_text("# Notes\n\nThe goat eats at noon.\n")
    return workspace


def upstream_file(path: Path, **servers: Any) -> Path:
    """Write an `mcpServers` file."""
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def ours(name: str, *arguments: str) -> dict[str, Any]:
    """The entry of a fixture server in `servers/`."""
    script = SERVERS / f"{name}.py"
    is_slow_to_import = name == "asking"  # a server of the SDK
    start = script_command(script, *arguments) if is_slow_to_import else [sys.executable, str(script), *arguments]
    command, *words = start
    return {"command": command, "args": words}


@pytest.fixture(scope="session")
def node() -> Node:
    return find_node()


@pytest.fixture
def seek_node(request: pytest.FixtureRequest) -> Callable[[], Node]:
    """Node is looked for where a visit needs it, so that the Python clients are tested without one, too."""
    return lambda: request.getfixturevalue("node")


@pytest.fixture
def launch(tmp_path: Path) -> Launch:
    """goat-mcp for one test, in a workspace of its own."""
    return Launch(tmp_path, fill(tmp_path / "workspace"))


@pytest.fixture
def wire(launch: Launch) -> Generator[Wire]:
    """A raw connection to a goat-mcp of this test's own, after the handshake."""
    with Wire(launch.command, launch.environment, launch.workspace, launch.folder / "stderr") as wire:
        wire.handshake()
        yield wire


@pytest.fixture(scope="module")
def shared_launch(tmp_path_factory: pytest.TempPathFactory) -> Launch:
    """goat-mcp for a module's tests that do not disturb each other."""
    folder = tmp_path_factory.mktemp("shared")
    return Launch(folder, fill(folder / "workspace"), UNASKED)


@pytest.fixture(scope="module")
def shared_http(shared_launch: Launch) -> Generator[HttpGoat]:
    with http_goat(shared_launch) as goat:
        yield goat
