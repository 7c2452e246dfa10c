"""A running gateway follows the user's settings file: the choice of tools, and what is wrong with the file. D15."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.loading import load_settings
from goat_mcp.state.directory import StateDirectory

pytestmark = pytest.mark.anyio
WITHIN_S = 2.0


def write(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


async def test_tools_come_and_go_with_the_settings_and_a_broken_file_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    own = tmp_path / "goat-mcp" / "goat-mcp.yaml"
    own.parent.mkdir()
    workspace = tmp_path / "project"
    workspace.mkdir()
    state = StateDirectory(tmp_path / "state")
    settings = load_settings({"workspace": [str(workspace)], "profiles": {"narrow": {}}}, state=state)
    gateway = Gateway(settings, approval=Approval.HOST, state=state)
    outdated: list[int] = []
    gateway.lists.on_outdated(lambda: outdated.append(gateway.catalog.generation))

    def names() -> set[str]:
        return {entry["name"] for entry in gateway.catalog.listing()}

    async with gateway.running():
        assert {"Bash", "Read"} <= names()

        write(own, "catalog: {deny: [Bash]}\n")
        await within(lambda: "Bash" not in names())
        assert len(outdated) == 1
        assert gateway.services.config_view.value("catalog.deny") == ["Bash"]
        assert gateway.services.config_view.source("catalog.deny") == "file"

        write(own, "catalog: {deny: [Nothing]}\n")
        await within(lambda: bool(gateway.problems()))
        (problem,) = gateway.problems()
        assert (problem["name"], problem["reason_code"]) == ("settings", "broken_settings")
        assert "catalog.deny" in problem["detail"] and "Nothing" in problem["detail"]
        assert "Bash" not in names()

        write(own, "catalog: {allow: ['preset:read_only']}\nmode: bypassPermissions\n")
        await within(lambda: "Read" in names() and "Write" not in names())
        (problem,) = gateway.problems()
        assert problem["reason_code"] == "restart_needed"
        assert problem["detail"] == "changed since the start, and read at the start only: mode"


async def within(wanted: Callable[[], bool]) -> None:
    with anyio.fail_after(WITHIN_S + 1):  # a second more for a busy machine
        while not wanted():  # noqa: ASYNC110  # what is waited for is seen by looking at a file
            await anyio.sleep(0.02)
