"""How each compared gateway is started in front of the server, over stdio on both sides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp import StdioServerParameters

from tests.e2e.goat import REPOSITORY, Launch
from tests.quick_start import module_command

FASTMCP_PYTHON = REPOSITORY / "bench" / ".venv" / "bin" / "python"
_ALL = ["elicitation", "roots", "sampling"]


def upstream(era: str) -> StdioServerParameters:
    """The server by itself."""
    command, *arguments = module_command("tests.passthrough.upstream", era)
    return StdioServerParameters(command=command, args=arguments, env={"PYTHONPATH": str(REPOSITORY)}, cwd=REPOSITORY)


def goat_launch(folder: Path, era: str, **members: Any) -> Launch:
    """goat-mcp in front of the server; `members` are more of its entry."""
    workspace = folder / "workspace"
    workspace.mkdir(parents=True)
    server = upstream(era)
    entry = {"command": server.command, "args": server.args, "env": server.env, "naming": "flat", "allow": _ALL}
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": {"everything": {**entry, **members}}}))
    # No workspace is named: the roots that the server is told are the client's.
    options = ("--upstreams", str(file), "--mode", "bypassPermissions")
    return Launch(folder, workspace, options, names_workspace=False)


def goat(folder: Path, era: str) -> StdioServerParameters:
    return goat_launch(folder, era).stdio()


def fastmcp(folder: Path, era: str) -> StdioServerParameters:
    folder.mkdir(parents=True)
    server = upstream(era)
    file = folder / "servers.json"
    entry = {"command": server.command, "args": server.args, "env": server.env, "cwd": str(REPOSITORY)}
    file.write_text(json.dumps({"mcpServers": {"everything": entry}}))
    script = REPOSITORY / "bench" / "servers" / "fastmcp_proxy.py"
    return StdioServerParameters(
        command=str(FASTMCP_PYTHON), args=[str(script), "stdio", str(file)], env={"FASTMCP_LOG_LEVEL": "ERROR"}
    )
