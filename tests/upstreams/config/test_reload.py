"""Entries change while upstreams run: what did not change does not notice (CFG-4, COL-2, D15)."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings, SettingsOrigin
from goat_mcp.state.directory import StateDirectory
from tests.upstreams.fleet import Fleet, fleet, load, server

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]
PATIENCE_S = 60.0


def steady(folder: Path, *tools: str, **members: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    return server("steady.py", folder, *tools, **members)


def is_there(file: Path) -> bool:
    return file.exists()


async def appears(file: Path) -> None:
    with anyio.fail_after(PATIENCE_S):
        while not is_there(file):  # noqa: ASYNC110  # another process makes it
            await anyio.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def ends(pid: int) -> None:
    with anyio.fail_after(PATIENCE_S):
        while is_alive(pid):  # noqa: ASYNC110  # another process ends
            await anyio.sleep(0.02)


async def pid_of(running: Fleet, name: str) -> int:
    return int((await running.call(f"mcp__{name}__pid")).text)


def apply(running: Fleet, folder: Path, entries: Mapping[str, Any]) -> None:
    running.upstreams.apply(load(folder, entries))


async def test_an_untouched_upstream_keeps_its_process_and_the_call_in_flight_when_its_neighbours_change(
    tmp_path: Path,
) -> None:  # CFG-4
    entries = {"a": steady(tmp_path / "a"), "b": steady(tmp_path / "b"), "c": steady(tmp_path / "c")}
    async with fleet(tmp_path, entries) as running, anyio.create_task_group() as group:
        before = {name: await pid_of(running, name) for name in entries}
        answers: list[str] = []

        async def wait() -> None:
            answers.append((await running.call("mcp__a__wait")).text)

        group.start_soon(wait)
        await appears(tmp_path / "a" / "waiting")

        apply(running, tmp_path, {"a": entries["a"], "b": steady(tmp_path / "b", "more"), "d": steady(tmp_path / "d")})
        await ends(before["b"])
        await ends(before["c"])
        await running.until(lambda: {"mcp__b__more", "mcp__d__pid"} <= set(running.registry.names()), PATIENCE_S)
        (tmp_path / "a" / "go").touch()
        await running.until(lambda: bool(answers), PATIENCE_S)

        assert answers == [str(before["a"])]
        assert await pid_of(running, "a") == before["a"]
        assert await pid_of(running, "b") != before["b"]
        assert running.registry.names() == tuple(
            f"mcp__{name}" for name in ("a__pid", "a__wait", "b__pid", "b__wait", "b__more", "d__pid", "d__wait")
        )
        assert [status.name for status in running.upstreams.status()] == ["a", "b", "d"]


@pytest.mark.parametrize("becomes", ["changed", "gone"])
async def test_a_call_in_flight_of_one_that_changes_or_goes_is_let_finish_and_new_ones_do_not_reach_it(
    tmp_path: Path, becomes: str
) -> None:  # CFG-4
    entries = {"a": steady(tmp_path / "a")}
    after = {"a": steady(tmp_path / "a", "more")} if becomes == "changed" else {}
    async with fleet(tmp_path, entries) as running, anyio.create_task_group() as group:
        old = await pid_of(running, "a")
        resolved = running.registry.get("mcp__a__pid")
        assert resolved is not None
        answers: list[str] = []

        async def wait() -> None:
            answers.append((await running.call("mcp__a__wait")).text)

        group.start_soon(wait)
        await appears(tmp_path / "a" / "waiting")

        apply(running, tmp_path, after)
        with pytest.raises(Exception, match="the entry of upstream a has changed or gone; the call did not run"):
            await resolved.execute({}, ToolContext(call_id="t"))
        if becomes == "changed":
            await running.until(lambda: running.registry.get("mcp__a__more") is not None, PATIENCE_S)
            assert await pid_of(running, "a") != old
        else:
            assert running.registry.names() == ()
        assert is_alive(old)
        (tmp_path / "a" / "go").touch()
        await ends(old)

        assert answers == [str(old)]


async def test_a_call_that_does_not_end_holds_up_the_end_for_a_bounded_time(tmp_path: Path) -> None:  # CFG-4
    async with (
        fleet(tmp_path, {"a": steady(tmp_path / "a")}, drain_s=0.5) as running,
        anyio.create_task_group() as group,
    ):
        old = await pid_of(running, "a")
        codes: list[ErrorCode] = []

        async def wait() -> None:
            codes.append((await running.failing("mcp__a__wait")).code)

        group.start_soon(wait)
        await appears(tmp_path / "a" / "waiting")

        apply(running, tmp_path, {})
        await ends(old)
        await running.until(lambda: bool(codes), PATIENCE_S)

        assert codes == [ErrorCode.OUTCOME_UNKNOWN]


async def test_a_live_name_stays_with_its_upstream_and_is_free_for_another_at_the_reload_that_takes_it_away(
    tmp_path: Path,
) -> None:  # COL-2
    first, second = steady(tmp_path / "a", "search"), steady(tmp_path / "b", "search", naming="flat")
    entries = {"b": second, "a": {**first, "naming": "flat"}}

    def owner(running: Fleet) -> str:
        return running.registry.snapshot.source_of.get("search", "nobody")

    async with fleet(tmp_path, {"a": entries["a"]}) as running:
        apply(running, tmp_path, entries)
        await running.until(lambda: bool(running.registry.snapshot.collisions), PATIENCE_S)

        assert owner(running) == "upstream:a"
        (rejected,) = [one for one in running.registry.snapshot.collisions if one.name == "search"]
        assert (rejected.source, rejected.kept_source) == ("upstream:b", "upstream:a")

        apply(running, tmp_path, {"b": second, "a": first})
        await running.until(lambda: running.registry.get("mcp__a__search") is not None, PATIENCE_S)

        assert owner(running) == "upstream:b"
        assert running.registry.snapshot.collisions == ()
        assert running.registry.names()[:3] == ("pid", "wait", "search")


# The files, as the gateway watches them


@asynccontextmanager
async def serving(
    folder: Path, *files: Path, trusted: Mapping[Path, bytes] | None = None, default: Path | None = None
) -> AsyncGenerator[Gateway]:
    (folder / "ws").mkdir(exist_ok=True)
    settings = Settings(workspace=(folder / "ws",), upstreams=files)
    settings.remember(SettingsOrigin(contents=trusted or {}, default_upstreams=default))
    gateway = Gateway(settings, approval=Approval.DENY, state=StateDirectory(folder / "state"))
    async with gateway.running():
        yield gateway


def write(file: Path, text: str) -> None:
    """As an editor does: another file takes its place."""
    file.parent.mkdir(exist_ok=True)
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def entries_of(**entries: Any) -> str:
    return json.dumps({"mcpServers": entries})


def known(gateway: Gateway) -> dict[str, str]:
    return {status.name: status.reason_code for status in gateway.upstreams.status()}


async def becomes(gateway: Gateway, wanted: dict[str, str]) -> None:
    with anyio.move_on_after(PATIENCE_S):
        while known(gateway) != wanted:  # noqa: ASYNC110  # what is waited for is seen by looking at a file
            await anyio.sleep(0.05)
    assert known(gateway) == wanted


async def test_a_changed_file_is_read_again_and_a_broken_one_is_reported_and_changes_nothing(tmp_path: Path) -> None:
    # CFG-4, D15
    file = tmp_path / "servers.json"
    write(file, entries_of(a={"command": "a"}, b={"command": "b"}))
    async with serving(tmp_path, file) as gateway:
        write(file, entries_of(b={"command": "b"}, c={"command": "c"}))
        await becomes(gateway, {"b": "", "c": ""})

        write(file, '{"mcpServers": {"d": ')
        await becomes(gateway, {"b": "", "c": "", "servers.json": "config_error"})
        (problem,) = gateway.problems()
        assert problem["detail"] == "line 1, column 22: Expecting value; what it said before stays in use"

        file.unlink()
        await becomes(gateway, {"b": "", "c": "", "servers.json": "config_error"})

        write(file, entries_of(c={"command": "c"}, e={"command": 7}))
        await becomes(gateway, {"c": "", "e": "config_error"})


@pytest.mark.posix_only("needs named pipes")
async def test_a_pipe_in_place_of_a_file_is_reported_and_does_not_hold_up_what_comes_after_it(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    write(file, entries_of(a={"command": "a"}))
    async with serving(tmp_path, file) as gateway:
        file.unlink()
        os.mkfifo(file)
        await becomes(gateway, {"a": "", "servers.json": "config_error"})

        write(file, entries_of(b={"command": "b"}))
        await becomes(gateway, {"b": ""})


async def test_the_users_own_file_counts_once_it_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # CFG-4
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    own = tmp_path / "config" / "goat-mcp" / "upstreams.json"
    own.parent.mkdir(parents=True)
    async with serving(tmp_path, default=own) as gateway:
        assert known(gateway) == {}

        write(own, entries_of(a={"command": "a"}))
        await becomes(gateway, {"a": ""})


@pytest.mark.posix_only("rights of files are POSIX's")
async def test_the_users_own_file_does_not_count_where_somebody_else_could_have_written_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # PR-32
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    own = tmp_path / "config" / "goat-mcp" / "upstreams.json"
    own.parent.mkdir(parents=True)
    write(own, entries_of(a={"command": "a"}))
    async with serving(tmp_path, own) as gateway:
        new = own.with_suffix(".evil")
        new.write_text(entries_of(evil={"command": "evil"}))
        new.chmod(0o666)
        new.replace(own)

        await becomes(gateway, {"a": "", "upstreams.json": "config_error"})


async def test_what_a_trusted_project_names_or_tools_may_write_stays_as_it_was_read(tmp_path: Path) -> None:
    # R-CONF-1: trust is for one content; and a call of Write must not start a program.
    trusted, inside, free = tmp_path / "trusted.json", tmp_path / "ws" / "inside.json", tmp_path / "free.json"
    before = {file: entries_of(**{file.stem: {"command": "x"}}) for file in (trusted, inside, free)}
    for file, text in before.items():
        write(file, text)
    async with serving(tmp_path, *before, trusted={trusted: before[trusted].encode()}) as gateway:
        write(trusted, entries_of(evil={"command": "evil"}))
        write(inside, entries_of(evil={"command": "evil"}))
        write(free, entries_of(new={"command": "x"}))

        await becomes(gateway, {"trusted": "", "inside": "", "new": ""})
