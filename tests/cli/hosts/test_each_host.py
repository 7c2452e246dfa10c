"""Every host of the table: its file before, after `install`, and after `import --move`; undone, it is what it was, byte
for byte. After a wanted change: GOLDEN_WRITE=1, and read the diff of `golden/each/`. CFG-2.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from goat_mcp.cli.hosts.host import Host, HostEnvironment
from goat_mcp.cli.hosts.importing import carry_out, plan_import, plan_install, write_host
from goat_mcp.cli.hosts.merging import ImportOutcome
from goat_mcp.cli.hosts.own_entry import own_launch, own_names
from goat_mcp.cli.hosts.receipts import Receipts
from goat_mcp.cli.hosts.sources import Source, is_here, one_source, sources_of
from goat_mcp.cli.hosts.table import HOSTS, host_named
from goat_mcp.cli.hosts.uninstall import plan_eject, plan_uninstall
from goat_mcp.core.errors import ToolError
from goat_mcp.state.directory import StateDirectory, own_upstreams_file
from goat_mcp.state.file_edit import Change, replace_bytes

GOLDEN = Path(__file__).with_name("golden") / "each"
EDITED = [host for host in HOSTS.values() if not host.paste_into]
SUFFIXES = {"json": "json", "jsonc": "json", "toml": "toml", "yaml": "yaml"}


class Home:
    """A user's home with one host's file where that host looks for it."""

    def __init__(self, folder: Path, host: Host) -> None:
        self.host = host
        self.environment = HostEnvironment("linux", folder, {"HOME": str(folder)})
        self.state = StateDirectory(folder / "state")
        self._project = None if host.user else folder / "project"
        self.file = self.source().file.path
        self.file.parent.mkdir(parents=True, exist_ok=True)

    def source(self) -> Source:
        return one_source(self.host, self.environment, self._project)

    def install(self) -> None:
        source = self.source()
        write_host(source, plan_install(source, own_upstreams_file(), self.environment), self.state, why="install")

    def uninstall(self) -> None:
        _, change = plan_uninstall(self.source(), self.state)
        self._undo(change)

    def move(self) -> list[ImportOutcome]:
        plan = plan_import([self.source()], own_upstreams_file(), self.environment, move=True)
        carry_out(plan, self.state)
        return [server.outcome for server in plan.sources[0].servers]

    def eject(self, *, keep_changes: bool = False) -> None:
        self._undo(plan_eject(Receipts(self.state, self.file), keep_changes=keep_changes).change)

    def _undo(self, change: Change) -> None:
        replace_bytes(change.path, change.after, was=change.before)
        Receipts(self.state, self.file).drop_last()


@pytest.fixture
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / ".config"))
    return Home(tmp_path, HOSTS[request.param])


def golden(host: Host, stage: str) -> Path:
    return GOLDEN / f"{host.name}.{stage}.{SUFFIXES[host.format]}"


def assert_is_golden(home: Home, stage: str) -> None:
    """Where the program lies is this machine's."""
    found = home.file.read_text().replace(own_launch(None)[0], "/opt/bin/goat-mcp")
    path = golden(home.host, stage)
    if os.environ.get("GOLDEN_WRITE"):
        path.write_text(found)
    assert found == path.read_text()


each_host = pytest.mark.parametrize("home", [host.name for host in EDITED], indirect=True)


@each_host
def test_its_file_after_each_command_and_after_its_undo(home: Home) -> None:
    before = golden(home.host, "before").read_bytes()
    home.file.write_bytes(before)

    home.install()
    assert_is_golden(home, "after")
    home.uninstall()
    assert home.file.read_bytes() == before

    outcomes = home.move()
    assert outcomes == [ImportOutcome.IMPORTED, ImportOutcome.IMPORTED]
    assert_is_golden(home, "moved")
    assert list(home.source().file.entries) == ["goat"]
    home.eject()
    assert home.file.read_bytes() == before


@each_host
def test_what_golden_says_is_what_the_issue_asks_for(home: Home) -> None:
    """Two servers, a key that nobody knows, comments if the notation has them; all but the servers stays."""
    before, after, moved = (golden(home.host, stage).read_text() for stage in ("before", "after", "moved"))
    home.file.write_text(before)

    assert len(home.source().file.entries) == 2
    has_comments = home.host.format != "json"
    marks = [mark for mark in ("key that nobody knows", "comment at the end") if mark in before]
    assert marks == ["key that nobody knows", "comment at the end"][: 1 + has_comments]
    assert all(mark in after and mark in moved for mark in marks)
    assert all(line in after.splitlines() for line in before.splitlines() if not re.search(r"[\]}]\s*$", line))


@each_host
def test_a_file_that_was_not_there_is_made_and_goes_again(home: Home) -> None:
    home.install()

    source = home.source()
    assert own_names(home.host, source.file.entries) == ["goat"]
    assert home.host.new_file.items() <= source.file.tree.items()
    home.uninstall()
    assert not home.file.exists()


@each_host
def test_servers_come_back_into_a_file_that_was_changed_since(home: Home) -> None:
    shutil.copy(golden(home.host, "before"), home.file)
    before = home.source().file.entries
    home.move()
    changed = home.file.read_text().replace("key that nobody knows", "key that I changed")
    home.file.write_text(changed)

    with pytest.raises(ToolError, match="has been changed since"):
        home.eject()
    home.eject(keep_changes=True)

    assert home.source().file.entries == before
    assert "key that I changed" in home.file.read_text()


def test_no_golden_file_is_left_over() -> None:
    wanted = {golden(host, stage).name for host in EDITED for stage in ("before", "after", "moved")}

    assert {path.name for path in GOLDEN.iterdir()} == wanted


@pytest.mark.parametrize("host", HOSTS.values(), ids=list(HOSTS))
def test_each_host_says_what_to_do_for_it_to_see_a_change(host: Host) -> None:
    assert host.after.endswith(".") and len(host.after) < 120
    assert host_named(host.name.upper().replace("-", "_")) is host


@pytest.mark.parametrize(
    ("host", "project", "next_step"),
    [
        *((host.name, None, f"`goat-mcp install --print {host.name}`") for host in HOSTS.values() if host.paste_into),
        ("kilo", None, "(.kilocode/mcp.json): add --project DIR."),
        ("windsurf", Path("/project"), "Leave out --project."),
    ],
)
def test_a_host_without_such_a_file_says_what_to_do(host: str, project: Path | None, next_step: str) -> None:
    with pytest.raises(ToolError, match="has no file") as raised:
        one_source(HOSTS[host], HostEnvironment("linux", Path("/home/me"), {}), project)

    assert next_step in raised.value.suggestion


def test_the_folder_that_two_hosts_share_is_a_sign_of_neither(tmp_path: Path) -> None:
    environment = HostEnvironment("linux", tmp_path, {})
    (tmp_path / ".gemini" / "antigravity").mkdir(parents=True)
    (tmp_path / ".gemini" / "antigravity" / "mcp_config.json").write_text("{}")

    found = [name for name in HOSTS if any(is_here(s, environment) for s in sources_of(HOSTS[name], environment))]

    assert found == ["antigravity"]
