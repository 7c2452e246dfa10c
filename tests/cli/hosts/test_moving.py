"""A host's file taken over and put back: in any notation, whatever is in it, byte for byte. CFG-2."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goat_mcp.cli.hosts.host import HostEnvironment
from goat_mcp.cli.hosts.host_file import read_host_file
from goat_mcp.cli.hosts.importing import ImportPlan, carry_out, plan_import, plan_install, write_host
from goat_mcp.cli.hosts.merging import ImportOutcome
from goat_mcp.cli.hosts.receipts import Receipts
from goat_mcp.cli.hosts.sources import Source, source_from, sources_of
from goat_mcp.cli.hosts.table import HOSTS
from goat_mcp.cli.hosts.uninstall import plan_eject, plan_uninstall, written_files
from goat_mcp.core.errors import ToolError
from goat_mcp.settings.json_text import read_json
from goat_mcp.state.directory import StateDirectory, own_upstreams_file
from goat_mcp.state.file_edit import replace_bytes
from tests.repetitions import examples

GOLDEN = Path(__file__).with_name("golden")


class Desk:
    """A user's home with one host's file in it."""

    def __init__(self, folder: Path, host: str, data: bytes = b"", name: str = "") -> None:
        self.host = HOSTS[host]
        self.file = folder / (name or f"{host}.conf")
        self.file.write_bytes(data)
        self.into = folder / "upstreams.json"
        self.state = StateDirectory(folder / "state")
        self.environment = HostEnvironment("linux", folder, {"HOME": str(folder)})

    def source(self, project: Path | None = None) -> Source:
        return Source(read_host_file(self.host, self.file), project)

    def plan(self) -> ImportPlan:
        return plan_import([self.source()], self.into, self.environment, move=True)

    def move(self) -> ImportPlan:
        plan = self.plan()
        carry_out(plan, self.state)
        return plan

    def eject(self, *, keep_changes: bool = False) -> None:
        receipts = Receipts(self.state, self.file)
        change = plan_eject(receipts, keep_changes=keep_changes).change
        replace_bytes(change.path, change.after, was=change.before)
        receipts.drop_last()

    def install(self) -> None:
        source = self.source()
        write_host(source, plan_install(source, self.into, self.environment), self.state, why="install")

    def entries(self) -> dict[str, Any]:
        return self.source().file.entries

    def ours(self) -> dict[str, Any]:
        return json.loads(self.into.read_text())["mcpServers"]


EDITABLE = [
    path
    for path in sorted(GOLDEN.glob("*.*"))
    if path.suffix in (".json", ".toml", ".yaml") and ".out." not in path.name
]


@pytest.mark.parametrize("given_file", EDITABLE, ids=lambda path: path.stem)
def test_every_hosts_file_keeps_the_rest_and_comes_back(
    given_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    data = given_file.read_bytes()
    desk = Desk(tmp_path, given_file.stem, data)
    desk.into = own_upstreams_file()
    before = desk.source().file.tree

    plan = desk.move()
    (one,) = plan.sources
    after = desk.source().file.tree
    stays = {server.name for server in one.servers if server.outcome in (ImportOutcome.KEPT, ImportOutcome.ITSELF)}
    entries = desk.entries()
    desk.eject()

    assert {key: value for key, value in after.items() if key != desk.host.root[0]} == {
        key: value for key, value in before.items() if key != desk.host.root[0]
    }
    assert set(entries) == stays | {"goat"}
    assert desk.file.read_bytes() == data


_NAMES = st.text('ab/*"é ,}', min_size=1, max_size=4)
_ENTRY = st.one_of(
    st.fixed_dictionaries({"command": st.text('x /*,"', min_size=1), "args": st.lists(st.text('y,}"\\'), max_size=2)}),
    st.fixed_dictionaries({"url": st.just("https://h/mcp"), "note": st.text("n\u2028\n", max_size=3)}),
    st.none() | st.integers(),
)


@settings(max_examples=examples(40), deadline=None)
@given(
    servers=st.dictionaries(_NAMES, _ENTRY, max_size=4),
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
    newline=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    comment=st.sampled_from(["", "// a }\n", '/* " */']),
)
def test_whatever_is_in_it_a_moved_file_comes_back_byte_for_byte(
    tmp_path_factory: pytest.TempPathFactory,
    servers: dict[str, Any],
    indent: Any,
    newline: str,
    mark: bytes,
    comment: str,
) -> None:
    text = comment + json.dumps({"a": {"b": [1]}, "mcpServers": servers, "z": "\u2028"}, indent=indent)
    data = mark + text.replace("\n", newline).encode()
    desk = Desk(tmp_path_factory.mktemp("desk"), "cursor", data)

    plan = desk.move()
    (one,) = plan.sources
    taken = {server.name: server.to for server in one.servers if server.to}
    moved = desk.file.read_bytes()
    tree = read_json(moved.decode("utf-8-sig"), with_comments=True)
    if taken:
        desk.eject()

    assert desk.file.read_bytes() == data and moved.startswith(mark)
    assert (tree["a"], tree["z"]) == ({"b": [1]}, "\u2028")
    assert ("goat" in tree["mcpServers"]) is bool(taken) and not set(taken) & set(tree["mcpServers"])
    assert set(desk.ours()) == set(taken.values()) if taken else not desk.into.exists()


def test_two_moves_are_one_to_put_back(tmp_path: Path) -> None:
    data = b'{"mcpServers": {"a": {"command": "a"}, "b": {"command": 7}}}'
    desk = Desk(tmp_path, "cursor", data)
    desk.install()
    desk.move()

    assert set(desk.entries()) == {"b", "goat"}
    desk.eject()

    assert desk.file.read_bytes() == data and written_files(desk.state) == []


def test_where_the_servers_were_moved_uninstalling_says_how_to_get_them_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor", b'{"mcpServers": {"a": {"command": "a"}}}')
    desk.move()

    with pytest.raises(ToolError, match="were moved behind goat-mcp") as refused:
        plan_uninstall(desk.source(), desk.state)

    assert "goat-mcp eject cursor" in refused.value.suggestion


def test_uninstalling_from_a_file_that_was_changed_takes_only_us_out(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "codex", b'[mcp_servers.a]\ncommand = "a"\n')
    desk.install()
    desk.file.write_text(desk.file.read_text() + '\n[mcp_servers.b]\ncommand = "b"\n')

    is_as_it_was, change = plan_uninstall(desk.source(), desk.state)

    assert not is_as_it_was and change.after is not None
    assert tomllib.loads(change.after.decode()) == {"mcp_servers": {"a": {"command": "a"}, "b": {"command": "b"}}}


def test_ejecting_what_was_changed_since_keeps_the_changes_of_toml_too(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "codex", b'[mcp_servers.a]\ncommand = "a"\n[mcp_servers.a.env]\nX = "1"\n')
    desk.move()
    desk.file.write_text('model = "new"\n' + desk.file.read_text())

    with pytest.raises(ToolError, match="changed since"):
        desk.eject()
    desk.eject(keep_changes=True)

    assert tomllib.loads(desk.file.read_text()) == {
        "model": "new",
        "mcp_servers": {"a": {"command": "a", "env": {"X": "1"}}},
    }


def test_ejecting_after_an_install_does_not_bring_back_what_the_user_removed_since(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor", b'{"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}}')
    desk.install()
    tree = json.loads(desk.file.read_text())
    del tree["mcpServers"]["b"]
    desk.file.write_text(json.dumps(tree))

    with pytest.raises(ToolError, match="server b was removed"):
        desk.eject()
    desk.eject(keep_changes=True)

    assert desk.entries() == {"a": {"command": "a"}}


def test_a_file_that_changes_between_plan_and_writing_is_left_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor", b'{"mcpServers": {"a": {"command": "a"}}}')
    plan = desk.plan()
    desk.file.write_text('{"mcpServers": {}}')

    with pytest.raises(ToolError, match="changed by another program"):
        carry_out(plan, desk.state)

    assert desk.file.read_text() == '{"mcpServers": {}}'
    assert written_files(desk.state) == [] and [*desk.ours()] == ["a"]
    assert [path.name for path in tmp_path.iterdir() if "goat-" in path.name] == []


def test_a_link_stays_a_link_and_the_file_behind_it_keeps_its_rights(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text('{"mcpServers": {"a": {"command": "a"}}}')
    real.chmod(0o640)
    desk = Desk(tmp_path, "cursor")
    desk.file.unlink()
    desk.file.symlink_to(real)

    desk.move()

    assert desk.file.is_symlink() and real.stat().st_mode & 0o777 == 0o640
    assert [*desk.entries()] == ["goat"]


def test_a_file_that_was_deleted_comes_back_as_it_was_only_if_that_is_wanted(tmp_path: Path) -> None:
    before = b'{"mcpServers": {"a": {"command": "a"}}}\n'
    desk = Desk(tmp_path, "cursor", before)
    desk.move()
    desk.file.unlink()

    with pytest.raises(ToolError, match="the file was deleted"):
        desk.eject()
    desk.eject(keep_changes=True)

    assert desk.file.read_bytes() == before


def test_of_several_entries_of_ours_those_with_a_command_that_is_gone_get_todays(tmp_path: Path) -> None:
    gone = {"command": str(tmp_path / "gone" / "goat-mcp"), "args": ["serve", "--mode", "plan"]}
    desk = Desk(tmp_path, "cursor", json.dumps({"mcpServers": {"g2": gone, "goat": gone}}).encode())

    desk.install()

    assert [Path(entry["command"]).exists() for entry in desk.entries().values()] == [True, True]
    assert [entry["args"][-2:] for entry in desk.entries().values()] == [["--mode", "plan"]] * 2


def test_a_write_protected_file_is_left_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor", b'{"mcpServers": {"a": {"command": "a"}}}')
    desk.file.chmod(0o444)

    with pytest.raises(ToolError, match="is write-protected"):
        desk.move()

    assert desk.file.read_bytes() == b'{"mcpServers": {"a": {"command": "a"}}}'
    assert desk.file.stat().st_mode & 0o777 == 0o444


@pytest.mark.root_only("nobody else can give files away")
def test_a_file_of_another_user_keeps_its_owner(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor", b'{"mcpServers": {"a": {"command": "a"}}}')
    os.chown(desk.file, 12345, 12345)

    desk.move()

    assert [*desk.entries()] == ["goat"] and (desk.file.stat().st_uid, desk.file.stat().st_gid) == (12345, 12345)


def test_equal_launches_of_two_hosts_are_one_and_equal_names_are_two(tmp_path: Path) -> None:
    one = Desk(tmp_path, "cursor", b'{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y", "env": {"K": "1"}}}}')
    two = Desk(
        tmp_path, "gemini", b'{"mcpServers": {"same": {"command": "x"}, "b": {"command": "y", "env": {"K": "2"}}}}'
    )

    plan = plan_import([one.source(), two.source()], one.into, one.environment, move=False)
    carry_out(plan, one.state)

    assert one.ours() == {
        "a": {"command": "x"},
        "b": {"command": "y", "env": {"K": "1"}},
        "b-gemini": {"command": "y", "env": {"K": "2"}},
    }
    assert [(server.name, server.outcome, server.to) for server in plan.sources[1].servers] == [
        ("same", ImportOutcome.PRESENT, "a"),
        ("b", ImportOutcome.IMPORTED, "b-gemini"),
    ]
    again = plan_import([two.source(), one.source()], one.into, one.environment, move=False)
    assert not again.into.is_one


def test_moving_takes_no_entry_whose_limits_are_not_in_our_file(tmp_path: Path) -> None:
    """CFG-2"""
    open_one = Desk(tmp_path, "cursor", b'{"mcpServers": {"first": {"command": "x"}}}')
    limits = {"command": "x", "disabledTools": ["env", "big"]}
    limited = Desk(tmp_path, "windsurf", json.dumps({"mcpServers": {"second": limits, "y": {"command": "y"}}}).encode())
    carry_out(plan_import([open_one.source()], open_one.into, open_one.environment, move=False), open_one.state)

    limited.move()

    assert limited.entries()["second"] == limits and set(limited.entries()) == {"second", "goat"}
    assert limited.ours() == {"first": {"command": "x"}, "y": {"command": "y"}}


def test_names_that_tools_could_not_tell_apart_are_told_apart(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor", b'{"mcpServers": {"my server": {"command": "x"}, "my_server": {"command": "y"}}}')

    desk.move()

    assert [*desk.ours()] == ["my server", "my_server-cursor"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ({"args": ["serve", "--upstreams", "/other.json"]}, r"starts goat-mcp \(g\) with /other\.json, not with"),
        (
            {"args": [], "env": {"GOAT_MCP_UPSTREAMS": "/other.json"}},
            r"starts goat-mcp \(g\) with /other\.json, not with",
        ),
        ({"args": ["serve", "--config", "x.yaml"]}, "with the upstreams that its --config names, not with"),
        ({"args": ["serve"]}, r"goat-mcp/upstreams\.json, not with"),
    ],
    ids=["flag", "variable", "config", "its own"],
)
def test_a_goat_that_reads_other_upstreams_is_not_left_alone_in_the_file(
    tmp_path: Path, words: dict[str, Any], told: str
) -> None:
    goat = {"command": "goat-mcp", **words}
    desk = Desk(tmp_path, "cursor", json.dumps({"mcpServers": {"g": goat, "a": {"command": "a"}}}).encode())

    with pytest.raises(ToolError, match=told) as refused:
        desk.plan()

    assert "(--into)" in refused.value.suggestion


def test_a_goat_of_the_users_own_stays_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    goat = {"command": "goat-mcp", "args": ["serve", "--workspace", "/src"]}
    desk = Desk(tmp_path, "cursor", json.dumps({"mcpServers": {"g": goat, "a": {"command": "a"}}}).encode())
    desk.into = own_upstreams_file()

    desk.move()

    assert desk.entries() == {"g": goat}


def test_what_was_already_in_our_file_keeps_its_bytes(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor", b'{"mcpServers": {"a": {"command": "a"}}}')
    desk.into.write_text('{ "note": 1,\n "mcpServers": {"mine": {"command":   "m"} } }')

    desk.move()

    assert (
        desk.into.read_text() == '{ "note": 1,\n "mcpServers": {"mine": {"command":   "m"}, "a": {"command": "a"} } }'
    )


def test_a_projects_servers_start_in_the_project(tmp_path: Path) -> None:
    project = tmp_path / "app"
    project.mkdir()
    (project / ".mcp.json").write_text('{"mcpServers": {"p": {"command": "./run.sh"}}}')
    state = {
        "projects": {
            str(project): {
                "mcpServers": {"local": {"command": "l", "cwd": "sub"}},
                "enabledMcpjsonServers": ["p"],
                "x": 1,
            },
            "/other": {},
        }
    }
    (tmp_path / ".claude.json").write_text(json.dumps(state))
    environment = HostEnvironment("linux", tmp_path, {})
    sources = [*sources_of(HOSTS["claude-code"], environment, project)]

    plan = plan_import(sources, tmp_path / "upstreams.json", environment, move=True)
    carry_out(plan, StateDirectory(tmp_path / "state"))
    moved = json.loads((tmp_path / ".claude.json").read_text())

    assert json.loads((tmp_path / "upstreams.json").read_text())["mcpServers"] == {
        "p": {"command": "./run.sh", "cwd": str(project)},
        "local": {"command": "l", "cwd": str(project / "sub")},
    }
    assert [*moved["projects"][str(project)]["mcpServers"]] == ["goat"]
    assert moved["projects"][str(project)]["x"] == 1 and moved["projects"]["/other"] == {}


def test_servers_of_single_projects_are_told_where_the_users_are_read(tmp_path: Path) -> None:
    state: dict[str, Any] = {
        "projects": {"/app": {"mcpServers": {"local": {"command": "l"}}}, "/none": {"mcpServers": {}}}
    }
    (tmp_path / ".claude.json").write_text(json.dumps(state))

    (source,) = sources_of(HOSTS["claude-code"], HostEnvironment("linux", tmp_path, {}))

    assert source.projects == ["/app"] and source.file.entries == {}


@pytest.mark.parametrize(
    ("name", "text", "host"),
    [
        ("config.toml", "", "codex"),
        ("claude_desktop_config.json", "{}", "claude-desktop"),
        ("x.json", '{"servers": {}}', "vscode"),
        ("settings.json", '{"context_servers": {},}', "zed"),
        (".cursor/mcp.json", '{"mcpServers": {}}', "cursor"),
        ("x.json", '{"mcpServers": {}}', "claude-code"),
        ("config.yaml", "extensions: {}", "goose"),
    ],
)
def test_a_named_file_tells_its_notation(tmp_path: Path, name: str, text: str, host: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)

    assert source_from(file, None, None).host.name == host


def test_a_damaged_receipt_puts_nothing_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "cursor", b'{"mcpServers": {"a": {"command": "a"}}}')
    desk.move()
    receipts = Receipts(desk.state, desk.file)
    receipts.path.write_bytes(receipts.path.read_bytes()[:-20])

    assert written_files(desk.state) == []
    assert receipts.all() == []


@pytest.mark.parametrize("data", [b"\xff\xfe", b"[]", b'{"mcpServers": []}', b'{"mcpServers": {}} x'])
def test_what_cannot_be_read_is_refused_and_named(tmp_path: Path, data: bytes) -> None:
    desk = Desk(tmp_path, "cursor", data)

    with pytest.raises(ToolError, match=r"Cursor's file .*cursor\.conf"):
        desk.plan()
