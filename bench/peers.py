"""Gateways and servers of others that we are compared with, each as the command that starts it. `make bench-peers`
installs them.

FastMCP's proxy relays any transport to any other. mcp-hub answers its clients over HTTP with SSE only, the transport
of 2024-11-05. supergateway turns one transport into the other, so it has no part in stdio to stdio or HTTP to HTTP.
"""

from __future__ import annotations

import platform
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.workbench import BENCH, FASTMCP_PYTHON, Workbench, script

HUB, SUPERGATEWAY = "mcp-hub", "supergateway"
FILESYSTEM, CLAUDE = "server-filesystem", "claude mcp serve"
_NODE_MODULES = BENCH / "node" / "node_modules"
_CLAUDE_BUILD = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), "none")
_PROGRAMS = {
    HUB: "mcp-hub/dist/cli.js",
    SUPERGATEWAY: "supergateway/dist/index.js",
    FILESYSTEM: "@modelcontextprotocol/server-filesystem/dist/index.js",
    # npm refuses the package around it for an older Node, which this program does not use.
    CLAUDE: f"@anthropic-ai/claude-code-linux-{_CLAUDE_BUILD}/claude",
}
_NO_ACCOUNT = {"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}


def missing_peers() -> list[str]:
    """The peers that cannot be measured here."""
    return [*(["FastMCP"] if not FASTMCP_PYTHON.exists() else []), *(name for name in _PROGRAMS if not is_here(name))]


def is_here(name: str) -> bool:
    return (name == CLAUDE or shutil.which("node") is not None) and (_NODE_MODULES / _PROGRAMS[name]).exists()


def bare_fastmcp() -> list[str]:
    """A server with one tool."""
    return script("fastmcp_server", python=FASTMCP_PYTHON)


def fastmcp(listen: str, *target: str) -> list[str]:
    """FastMCP's proxy, on `stdio` or a port, before a URL, a file of `mcpServers` or a command."""
    return script("fastmcp_proxy", listen, *target, python=FASTMCP_PYTHON)


def hub(bench: Workbench, port: int, entries: Mapping[str, Mapping[str, object]]) -> list[str]:
    """mcp-hub before the upstreams of an `mcpServers` table; it is found at `/mcp` of the port, by SSE."""
    file = bench.upstreams_file(entries, f"hub-{port}")
    return _node(HUB, "--port", str(port), "--config", str(file))


def supergateway_over_http(port: int, command: Sequence[str]) -> list[str]:
    """A stdio server over HTTP with sessions. Without them it starts a process for each request."""
    over_http = ("--outputTransport", "streamableHttp", "--stateful", "--port", str(port))
    return _node(SUPERGATEWAY, "--stdio", shlex.join(command), *over_http, "--logLevel", "none")


def supergateway_over_stdio(url: str) -> list[str]:
    return _node(SUPERGATEWAY, "--streamableHttp", url, "--logLevel", "none")


def filesystem(folder: Path) -> list[str]:
    return _node(FILESYSTEM, str(folder))


def claude() -> list[str]:
    """It lists its tools without an account."""
    return [str(_NODE_MODULES / _PROGRAMS[CLAUDE]), "mcp", "serve"]


def claude_env(bench: Workbench) -> dict[str, str]:
    """Nothing of its user's account."""
    return {name: bench.env[name] for name in ("HOME", "PATH")} | _NO_ACCOUNT


def _node(name: str, *arguments: str) -> list[str]:
    return ["node", str(_NODE_MODULES / _PROGRAMS[name]), *arguments]
