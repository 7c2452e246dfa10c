"""A host on Windows whose server runs in WSL: its roots and the paths that its model sends are folders of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp.client.context import ClientRequestContext

from tests.fake_wsl import DISTRIBUTION, put_into_wsl
from tests.server.test_adapter import both_eras, connected, gateway

pytestmark = pytest.mark.anyio


def naming(*uris: str) -> Any:
    async def answer(context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult.model_validate({"roots": [{"uri": uri} for uri in uris]})

    return answer


@both_eras
async def test_its_folders_are_the_workspace_and_its_paths_are_understood(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = put_into_wsl(tmp_path, monkeypatch)
    project, linux = windows.profile / "proj", tmp_path / "linux"
    for folder in (project, linux):
        folder.mkdir(parents=True)
    (project / "a.txt").write_text("needle\n")
    served = gateway(tmp_path, ask_client_for_roots=True)
    roots = naming("file:///c%3A/Users/Ada%20L/proj", f"file://wsl.localhost/{DISTRIBUTION}{linux}")
    name = rf"\\wsl.localhost\{DISTRIBUTION}{linux}\b.txt".replace("/", "\\")

    async with connected(served, mode, list_roots_callback=roots) as client:
        read = await client.call_tool("Read", {"file_path": r"C:\Users\Ada L\proj\a.txt"})
        written = await client.call_tool("Write", {"file_path": name, "content": "x\n"})
        found = await client.call_tool("Grep", {"pattern": "needle", "path": r"c:\Users\Ada L\proj"})
        outside = await client.call_tool("Read", {"file_path": r"C:\Users\Ada L\other.txt"})
        elsewhere = await client.call_tool("Read", {"file_path": r"\\wsl.localhost\Debian\etc\passwd"})

    assert served.workspace.roots == (project, linux)
    assert [read.is_error, written.is_error, found.is_error] == [False, False, False]
    assert (linux / "b.txt").read_text() == "x\n"
    assert str(project / "a.txt") in str(found.content)
    assert "E_PATH_OUTSIDE" in str(outside.content)
    assert "another distribution" in str(elsewhere.content)
