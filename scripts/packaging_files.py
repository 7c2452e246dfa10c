"""What registries and hosts are told of this package: `server.json` of the MCP registry and the `manifest.json` of the
bundle, made from pyproject.toml and the tools. What goes into a bundle is `bundle.py`'s.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.version import __version__
from goat_mcp.tools.docs import short_doc

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "manifests" / "packaging"
REGISTRY_FILE, BUNDLE_FILE = FOLDER / "server.json", FOLDER / "manifest.json"
REGISTRY_SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
MARKER = re.compile(r"mcp-name: (\S+)")
WORKSPACE = "The directory whose files the tools may read and change, and where commands run."
UPSTREAMS = (
    "A JSON file with the MCP servers that you want behind this one, in the shape of claude_desktop_config.json. "
    "Where none is named, goat-mcp/upstreams.json in your config directory is read, if it is there."
)


def project() -> dict[str, Any]:
    """What pyproject.toml says of the project, with the version, which only the package itself has."""
    return {**tomllib.loads((ROOT / "pyproject.toml").read_text())["project"], "version": __version__}


def registered_name() -> str:
    """The name that the README claims: whoever releases the package is who may register it."""
    found = MARKER.search((ROOT / "README.md").read_text())
    if found is None:
        raise SystemExit("README.md has no `mcp-name: NAMESPACE/NAME` in a comment")
    return found[1]


def registry_entry() -> dict[str, Any]:
    """`server.json`: how a client of the MCP registry starts the released package."""
    about = project()
    package = {
        "registryType": "pypi",
        "identifier": about["name"],
        "version": about["version"],
        "runtimeHint": "uvx",
        "transport": {"type": "stdio"},
        "packageArguments": [
            {"type": "positional", "value": "serve"},
            {
                "type": "named",
                "name": "--workspace",
                "description": WORKSPACE,
                "format": "filepath",
                "isRequired": True,
                "isRepeated": True,
            },
        ],
        "environmentVariables": [{"name": "GOAT_MCP_UPSTREAMS", "description": UPSTREAMS, "format": "filepath"}],
    }
    return {
        "$schema": REGISTRY_SCHEMA,
        "name": registered_name(),
        "title": about["name"],
        "description": about["description"],
        "version": about["version"],
        "packages": [package],
    }


def bundle_manifest(specs: Iterable[ToolSpec]) -> dict[str, Any]:
    """`manifest.json` of an MCPB: the host installs with uv what pyproject.toml names, and starts the command.

    A field that the user leaves empty comes as an empty variable, which counts as none; an argument could not be left
    out.
    """
    about = project()
    command = ["run", "--directory", "${__dirname}", "--no-dev", about["name"], "serve"]
    return {
        "manifest_version": "0.4",
        "name": about["name"],
        "display_name": about["name"],
        "version": about["version"],
        "description": about["description"],
        "author": {"name": "the goat-mcp authors"},
        "license": about["license"],
        "keywords": about["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "goat_mcp/__main__.py",
            "mcp_config": {
                "command": "uv",
                "args": [*command, "--workspace", "${user_config.workspace}"],
                "env": {"GOAT_MCP_UPSTREAMS": "${user_config.upstreams}"},
            },
        },
        "tools": [{"name": spec.name, "description": short_doc(spec)} for spec in specs],
        "tools_generated": True,
        "compatibility": {"platforms": ["darwin", "linux"], "runtimes": {"python": about["requires-python"]}},
        "user_config": {
            "workspace": {
                "type": "directory",
                "title": "Workspace",
                "description": WORKSPACE,
                "required": True,
            },
            "upstreams": {
                "type": "file",
                "title": "Your other MCP servers",
                "description": UPSTREAMS,
                "required": False,
                "default": "",
            },
        },
    }
