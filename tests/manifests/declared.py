"""Directories of manifests, and gateways over them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import anyio
import yaml

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory

ANYTHING: Mapping[str, Any] = {"type": "object", "additionalProperties": True}


def tool(name: str, entry: Any, *exports: str | Mapping[str, Any], **spec: Any) -> dict[str, Any]:
    """A document of a tool. An export given by its name takes anything."""
    return {
        "apiVersion": "goat-mcp/v1",
        "kind": "Tool",
        "metadata": {"name": name},
        "spec": {"entry": entry, "exports": [_export(export) for export in exports], **spec},
    }


def _export(export: str | Mapping[str, Any]) -> Mapping[str, Any]:
    given = {"name": export} if isinstance(export, str) else export
    return {"description": "For tests.", "sideEffect": "none", "parameters": dict(ANYTHING), **given}


def write(folder: Path, document: Mapping[str, Any], **files: str) -> Path:
    """One resource's directory: its manifest, and files beside it (`weather_py="..."` is weather.py)."""
    place = folder / str(document["metadata"]["name"])
    place.mkdir(parents=True, exist_ok=True)
    (place / "tool.yaml").write_text(yaml.safe_dump(dict(document), sort_keys=False))
    for name, text in files.items():
        stem, _, suffix = name.rpartition("_")
        file = place / f"{stem}.{suffix}"
        file.write_text(text)
        if text.startswith("#!"):
            file.chmod(0o755)
    return place


def python(folder: Path, name: str, source: str, *exports: str | Mapping[str, Any], **spec: Any) -> Path:
    """A resource of Python handlers."""
    return write(folder, tool(name, "./handlers.py", *exports, **spec), handlers_py=source)


def gateway_over(tmp_path: Path, *folders: Path, **settings: Any) -> Gateway:
    """A gateway whose workspace is `tmp_path/workspace`, over these directories."""
    workspace = tmp_path / "workspace"
    workspace.mkdir(exist_ok=True)
    return Gateway(
        Settings.model_validate({"workspace": [workspace], "manifests": list(folders), **settings}),
        approval=Approval.HOST,
        state=StateDirectory(tmp_path / "state"),
    )


async def call(gateway: Gateway, name: str, /, **arguments: Any) -> ToolResult:
    return await gateway.call(name, arguments, ToolContext(call_id="call-1"))


def error_of(result: ToolResult) -> dict[str, Any]:
    """The error object of a call that failed."""
    assert result.is_error, result.text
    assert result.facts is not None
    return dict(result.facts["error"])


async def eventually(happens: Callable[[], bool], within_s: float = 20.0) -> None:
    """Wait until it does. What it looks at - files, processes, a watcher's next look - has no event to wait for."""
    with anyio.fail_after(within_s):
        while not happens():  # noqa: ASYNC110  # see above
            await anyio.sleep(0.05)
