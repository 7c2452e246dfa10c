"""A running gateway follows the rules of its settings, of a trusted project and of Claude Code's files. D15."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings import watched_settings
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import path_keys
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.trust.project import whole_project
from goat_mcp.state.trust.settings_file import find_project_file
from goat_mcp.state.trust.store import TrustStore

pytestmark = pytest.mark.anyio
PATIENCE_S = 20.0


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


@dataclass
class Running:
    gateway: Gateway
    folder: Path

    @property
    def own(self) -> Path:
        return self.folder / "config" / "goat-mcp" / "goat-mcp.yaml"

    @property
    def project(self) -> Path:
        return self.folder / "project"

    async def call(self, tool: str, **arguments: Any) -> str:
        """What becomes of a call if nobody can be asked."""
        result = await self.gateway.call(tool, arguments, ToolContext(call_id="c"))
        return result.error_code or "ok"

    async def until(self, wanted: str, tool: str = "Bash", **arguments: Any) -> None:
        with anyio.fail_after(PATIENCE_S):
            while await self.call(tool, **arguments) != wanted:  # noqa: ASYNC110  # what changes is a file
                await anyio.sleep(0.02)

    async def until_it_says(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        with anyio.fail_after(PATIENCE_S):
            while not (found := [one for one in self.gateway.problems() if wanted(one)]):  # noqa: ASYNC110  # a file
                await anyio.sleep(0.02)
        return found[0]

    async def until_all_is_well(self) -> None:
        with anyio.fail_after(PATIENCE_S):
            while self.gateway.problems():  # noqa: ASYNC110  # a file
                await anyio.sleep(0.02)

    def trust_project(self) -> None:
        found = find_project_file(self.project)
        assert found is not None
        store = TrustStore(StateDirectory(self.folder / "state"))
        store.trust(found.path, whole_project(found, path_keys()).sha256)


@asynccontextmanager
async def running(folder: Path, **flags: Any) -> AsyncGenerator[Running]:
    state = StateDirectory(folder / "state")
    settings = load_settings({"workspace": [str(folder / "project")], **flags}, state=state)
    gateway = Gateway(settings, approval=Approval.DENY, state=state)
    async with gateway.running():
        yield Running(gateway, folder)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(watched_settings, "LOOK_S", 0.05)
    (tmp_path / "project").mkdir()
    return tmp_path


async def test_rules_come_and_go_and_a_broken_file_leaves_them_as_they_were(folder: Path) -> None:
    async with running(folder) as now:
        assert await now.call("Bash", command="echo hi") == "E_PERMISSION"

        write(now.own, "permissions: {allow: [Bash(echo *)]}\n")
        await now.until("ok", command="echo hi")

        write(now.own, "permissions: {allow: [Bahs]}\n")
        problem = await now.until_it_says(lambda one: one["reason_code"] == "broken_settings")
        assert "names no tool" in problem["detail"] and "what was in force before stays in force" in problem["detail"]
        assert await now.call("Bash", command="echo hi") == "ok"

        write(now.own, "permissions: {allow: [Bash(echo *)], deny: [Bash(echo secret)]}\n")
        await now.until("E_PERMISSION", command="echo secret")
        assert now.gateway.problems() == []
        assert now.gateway.status.document()["permissions"]["rules"]["deny"] == ["Bash(echo secret)"]

        now.own.unlink()
        await now.until("E_PERMISSION", command="echo hi")


async def test_goas_lists_are_followed_too(folder: Path) -> None:
    async with running(folder, mode="bypassPermissions") as now:
        write(now.own, "bash: {blocked: [rm], allowed: [echo, rm]}\n")
        await now.until("E_BLOCKED", command="rm x")
        assert await now.call("Bash", command="date") == "E_PERMISSION"
        assert await now.call("Bash", command="echo hi") == "ok"


async def test_a_mode_that_allows_less_holds_for_the_next_call_and_one_that_allows_more_waits(folder: Path) -> None:
    write(folder / "config" / "goat-mcp" / "goat-mcp.yaml", "mode: acceptEdits\n")
    (folder / "project" / "a").write_text("x")
    change = {"file_path": "@new", "content": "x"}
    async with running(folder) as now:
        assert await now.call("Write", **change) == "ok"

        write(now.own, "mode: plan\n")
        await now.until("E_PLAN_MODE", "Write", **{**change, "file_path": "@other"})

        write(now.own, "mode: bypassPermissions\n")
        problem = await now.until_it_says(lambda one: one["reason_code"] == "restart_needed")
        assert problem["detail"].endswith(": mode")
        assert await now.call("Bash", command="echo hi") == "E_PERMISSION"


async def test_a_file_that_may_not_be_read_any_longer_is_not_found_either(folder: Path) -> None:
    (folder / "project" / "secret.txt").write_text("needle\n")
    async with running(folder) as now:

        async def found() -> str:
            arguments = {"pattern": "needle", "output_mode": "files_with_matches"}
            return (await now.gateway.call("Grep", arguments, ToolContext(call_id="c"))).text

        assert "secret.txt" in await found()
        write(now.own, "permissions: {deny: [Read(secret.txt)]}\n")
        await now.until("E_PERMISSION", "Read", file_path="@secret.txt")
        assert "secret.txt" not in await found()


async def test_a_projects_rules_count_as_far_as_they_are_trusted(folder: Path) -> None:
    file = folder / "project" / "goat-mcp.yaml"
    write(file, "permissions: {deny: [Bash(date)]}\n")
    async with running(folder, mode="acceptEdits") as now:
        write(file, "permissions: {allow: [Bash(echo *)], deny: [Bash(date), Bash(uname)]}\n")
        await deny_in_force(now, "Bash(uname)")
        assert await now.call("Bash", command="echo hi") == "E_PERMISSION"

        now.trust_project()
        await now.until("ok", command="echo hi")

        # Somebody takes a denial out: that is not trusted, and lifts nothing.
        write(file, "permissions: {allow: [Bash(echo *)], deny: [Bash(id)]}\n")
        await deny_in_force(now, "Bash(id)")
        assert await now.call("Bash", command="date") == "E_PERMISSION"


async def deny_in_force(now: Running, rule: str) -> None:
    with anyio.fail_after(PATIENCE_S):
        while rule not in [one.text for one in now.gateway.services.rules.now().deny.rules]:  # noqa: ASYNC110  # a file
            await anyio.sleep(0.02)


async def test_a_claude_settings_file_is_read_again(folder: Path) -> None:
    file = folder / "claude.json"
    write(file, json.dumps({"permissions": {"allow": []}}))
    async with running(folder, claude_settings=[str(file)]) as now:
        assert await now.call("Bash", command="echo hi") == "E_PERMISSION"

        write(file, json.dumps({"permissions": {"allow": ["Bash(echo:*)"]}}))
        await now.until("ok", command="echo hi")

        for broken in ('{"permissions": ', '{"permissions": {"allow": ["Bash("]}}'):
            write(file, broken)
            problem = await now.until_it_says(lambda one: "claude.json:1" in one["detail"])
            assert problem["detail"].endswith("the rules that it held before stay in force")
            assert await now.call("Bash", command="echo hi") == "ok"
            write(file, json.dumps({"permissions": {"allow": ["Bash(echo:*)"]}}))
            await now.until_all_is_well()

        hook = {"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}
        write(file, json.dumps({"hooks": {"PreToolUse": [hook]}, "permissions": {"allow": ["Bash(echo:*)"]}}))
        problem = await now.until_it_says(lambda one: one["reason_code"] == "restart_needed")
        assert problem["detail"].endswith(f": the hooks of {file}")
        write(file, json.dumps({"permissions": {"allow": ["Bash(echo:*)"]}}))
        await now.until_all_is_well()

        # Nor does it hold up what the user changes elsewhere.
        write(file, "{")
        await now.until_it_says(lambda one: "claude.json:1" in one["detail"])
        write(now.own, "permissions: {deny: [Bash(echo hi)]}\n")
        await now.until("E_PERMISSION", command="echo hi")
        assert await now.call("Bash", command="echo ho") == "ok"


async def test_a_claude_settings_file_that_tools_may_write_stays_as_it_was_and_the_users_own_is_followed(
    folder: Path,
) -> None:
    file = folder / "project" / "claude.json"
    write(file, json.dumps({"permissions": {"allow": []}}))
    async with running(folder, claude_settings=[str(file)]) as now:
        write(file, json.dumps({"permissions": {"allow": ["Bash"]}}))
        write(now.own, "permissions: {deny: [Bash(date)]}\n")

        await deny_in_force(now, "Bash(date)")

        assert await now.call("Bash", command="echo hi") == "E_PERMISSION"


@pytest.mark.parametrize("broken", ["permissions: [", "permissions: {deny: [Nope]}", "catalog: {deny: [Nope]}"])
async def test_a_broken_file_of_a_project_holds_up_nothing_that_the_user_denies(folder: Path, broken: str) -> None:
    file = folder / "project" / "goat-mcp.yaml"
    write(file, "permissions: {deny: [Bash(date)]}\n")
    async with running(folder, mode="bypassPermissions") as now:
        write(file, broken)
        problem = await now.until_it_says(lambda one: one["reason_code"] == "broken_settings")
        write(now.own, "permissions: {deny: [Bash(echo *)]}\n")

        await now.until("E_PERMISSION", command="echo hi")

        assert problem["detail"].endswith("what the project's file said before stays in force")
        assert now.gateway.problems() == [problem]
        assert await now.call("Bash", command="date") == "E_PERMISSION"
