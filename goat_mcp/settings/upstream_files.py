"""The user's own files of upstream servers, read as they are, for whoever shows them and starts nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from goat_mcp.core.errors import ToolError
from goat_mcp.core.json_values import items, mapping
from goat_mcp.state.directory import config_folder, own_upstreams_file

_SETTINGS_FILE = "goat-mcp.yaml"


def configured_servers() -> dict[str, Any]:
    """The entries of all files that can be read, by name."""
    return {name: entry for file in upstream_files() for name, entry in (entries_in(file) or {}).items()}


def entries_in(file: Path) -> Mapping[str, Any] | None:
    """None if it cannot be read. One that is not there has none."""
    try:
        return mapping(mapping(json.loads(file.read_bytes())).get("mcpServers"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError):
        return None


def upstream_files() -> list[Path]:
    """The files that the user's settings name, else the user's own one."""
    settings = config_folder() / _SETTINGS_FILE
    if settings.is_file():
        from goat_mcp.settings.yaml_text import read_yaml

        with suppress(OSError, ValueError, ToolError):  # `doctor` says what is wrong with the file
            tree = read_yaml(settings.read_text("utf-8"))
            if "upstreams" in tree:
                return [settings.parent / Path(str(name)).expanduser() for name in items(tree["upstreams"])]
    return [own_upstreams_file()]
