"""Settings that are read again while a gateway runs: what follows them, and what keeps what was in force. D15."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.settings import watched_settings
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import BrokenSettings, Settings, path_keys
from goat_mcp.settings.watched_settings import WatchedSettings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.trust.project import whole_project
from goat_mcp.state.trust.settings_file import find_project_file
from goat_mcp.state.trust.store import TrustStore

pytestmark = pytest.mark.anyio
PATIENCE_S = 20.0


@pytest.fixture(autouse=True)
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's file, which is not there yet."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(watched_settings, "LOOK_S", 0.02)
    (tmp_path / "config" / "goat-mcp").mkdir(parents=True)
    (tmp_path / "project").mkdir()
    return tmp_path / "config" / "goat-mcp" / "goat-mcp.yaml"


def write(file: Path, text: str) -> None:
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)


def remove(file: Path) -> None:
    file.unlink()


class Watching:
    def __init__(self, watched: WatchedSettings) -> None:
        self.watched = watched
        self.refused = ""
        watched.follow(self._follow)

    def _follow(self, settings: Settings) -> Callable[[], None]:
        if self.refused and self.refused in settings.catalog.deny:
            raise BrokenSettings(f"no tool {self.refused}")
        return lambda: None

    @property
    def denied(self) -> tuple[str, ...]:
        return tuple(self.watched.in_force.catalog.deny)

    async def until(self, wanted: Callable[[], bool]) -> None:
        with anyio.fail_after(PATIENCE_S):
            while not wanted():  # noqa: ASYNC110  # what is waited for is seen by looking at a file
                await anyio.sleep(0.01)


@asynccontextmanager
async def watching(tmp_path: Path, *, is_open: bool = False, **flags: Any) -> AsyncGenerator[Watching]:
    settings = load_settings({"workspace": [str(tmp_path / "project")], **flags}, state=StateDirectory(tmp_path / "s"))
    watched = WatchedSettings(settings, lambda path: is_open)
    async with anyio.create_task_group() as group:
        group.start_soon(watched.watch, lambda: None)
        yield Watching(watched)
        group.cancel_scope.cancel()


async def test_a_file_that_is_made_and_changed_is_followed(tmp_path: Path, own: Path) -> None:
    async with watching(tmp_path) as now:
        write(own, "catalog: {deny: [Bash]}\n")
        await now.until(lambda: now.denied == ("Bash",))
        assert now.watched.in_force.source_of("catalog.deny") == "file"

        remove(own)
        await now.until(lambda: now.denied == ())


async def test_a_file_that_an_editor_moves_away_and_writes_again_denies_all_the_time(
    tmp_path: Path, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(own, "catalog: {deny: [Bash]}\n")
    async with watching(tmp_path) as now:
        monkeypatch.setattr(watched_settings, "SETTLED_S", PATIENCE_S)
        remove(own)
        await anyio.sleep(0.2)  # ten looks, one of which would have been enough
        assert now.denied == ("Bash",)


async def test_a_broken_file_changes_nothing_and_is_a_problem_until_it_is_fixed(tmp_path: Path, own: Path) -> None:
    write(own, "catalog: {deny: [Bash]}\n")
    async with watching(tmp_path) as now:
        write(own, "catalog: {denny: [Read]}\n")
        await now.until(lambda: now.watched.problem != "")
        assert "catalog.denny: no such setting" in now.watched.problem
        assert now.denied == ("Bash",)

        write(own, "catalog: {deny: [Read]}\n")
        await now.until(lambda: now.denied == ("Read",))
        assert now.watched.problem == ""


async def test_what_one_follower_cannot_use_is_in_force_for_nobody(tmp_path: Path, own: Path) -> None:
    async with watching(tmp_path) as now:
        now.refused = "Nobody"
        write(own, "catalog: {deny: [Nobody]}\n")

        await now.until(lambda: now.watched.problem != "")

        assert "no tool Nobody" in now.watched.problem
        assert now.denied == ()


async def test_a_setting_that_nobody_follows_stays_and_is_named(tmp_path: Path, own: Path) -> None:
    write(own, "output: {max_chars: 20000}\n")
    async with watching(tmp_path) as now:
        write(own, "output: {max_chars: 50000}\ncatalog: {deny: [Bash], toolsets: [goa]}\n")

        await now.until(lambda: now.denied == ("Bash",))

        assert now.watched.in_force.output.max_chars == 20000
        assert now.watched.waiting_for_restart == ["output.max_chars", "catalog.toolsets (goa)"]


async def test_a_flag_still_beats_the_file(tmp_path: Path, own: Path) -> None:
    async with watching(tmp_path, catalog={"allow": ["Read"]}) as now:
        write(own, "catalog: {allow: [Bash], deny: [Edit]}\n")

        await now.until(lambda: now.denied == ("Edit",))

        assert now.watched.in_force.catalog.allow == ("Read",)


async def test_a_file_that_tools_may_write_stays_as_it_was(tmp_path: Path, own: Path) -> None:
    async with watching(tmp_path, is_open=True) as now:
        write(own, "catalog: {deny: [Bash]}\n")
        await anyio.sleep(0.2)  # ten looks

        assert now.denied == ()
        assert now.watched.files == ()
        assert list(now.watched.waiting_for_restart) == [f"{own} (tools may write to it)"]


def trust(tmp_path: Path) -> None:
    found = find_project_file(tmp_path / "project")
    assert found is not None
    TrustStore(StateDirectory(tmp_path / "s")).trust(found.path, whole_project(found, path_keys()).sha256)


async def test_an_untrusted_change_of_a_project_only_denies_more_and_a_trusted_one_counts(tmp_path: Path) -> None:
    # CFG-5, R-CONF-1
    project = tmp_path / "project" / "goat-mcp.yaml"
    write(project, "catalog: {allow: [Bash, Edit], deny: [Edit]}\n")
    trust(tmp_path)
    async with watching(tmp_path) as now:
        assert now.watched.in_force.catalog.allow == ("Bash", "Edit")

        write(project, "catalog: {deny: [Bash]}\n")
        await now.until(lambda: now.denied == ("Edit", "Bash"))
        assert now.watched.in_force.catalog.allow == ("Bash", "Edit")

        trust(tmp_path)
        await now.until(lambda: now.denied == ("Bash",))
        assert now.watched.in_force.catalog.allow is None


async def test_a_project_file_that_goes_lifts_nothing(tmp_path: Path, own: Path) -> None:
    project = tmp_path / "project" / "goat-mcp.yaml"
    write(project, "catalog: {deny: [Edit]}\n")
    async with watching(tmp_path) as now:
        remove(project)
        write(own, "catalog: {deny: [Bash]}\n")

        await now.until(lambda: "Bash" in now.denied)

        assert set(now.denied) == {"Bash", "Edit"}


@pytest.mark.parametrize(
    ("start", "now", "in_force"),
    [
        ("acceptEdits", "default", "default"),
        ("default", "plan", "plan"),
        ("default", "bypassPermissions", "default"),
        ("dontAsk", "plan", "dontAsk"),
    ],
)
async def test_a_mode_is_followed_if_it_allows_no_more_than_that_of_the_start(
    tmp_path: Path, own: Path, start: str, now: str, in_force: str
) -> None:  # D8, R-PERM-6
    write(own, f"mode: {start}\n")
    async with watching(tmp_path) as running:
        write(own, f"mode: {now}\npermissions: {{deny: [Bash]}}\n")

        await running.until(lambda: tuple(running.watched.in_force.permissions.deny) == ("Bash",))

        assert running.watched.in_force.mode.value == in_force
        assert running.watched.waiting_for_restart == ([] if now == in_force else ["mode"])
