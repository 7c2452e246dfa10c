"""What the composition root makes of settings: the workspace, the rules, and what is wrong with upstreams."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.upstreams.status import UpstreamState

pytestmark = pytest.mark.anyio

WEATHER = Path(__file__).resolve().parents[2] / "examples" / "weather_stdio.py"


def gateway(folder: Path, *, ask_client_for_roots: bool = False, **settings: Any) -> Gateway:
    return Gateway(
        Settings.model_validate(settings),
        approval=Approval.HOST,
        ask_client_for_roots=ask_client_for_roots,
        state=StateDirectory(folder / "state"),
    )


def test_the_named_workspaces_are_the_roots_and_the_first_is_the_primary_one(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()

    workspace = gateway(tmp_path, workspace=[one, two]).workspace

    assert workspace.roots == (one, two)
    assert workspace.primary == one


def test_a_workspace_that_is_no_directory_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(BrokenSettings, match="nowhere is not a directory"):
        gateway(tmp_path, workspace=[tmp_path / "nowhere"])


def test_a_tilde_in_the_workspace_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "Documents").mkdir()

    assert gateway(tmp_path, workspace=["~/Documents"]).workspace.primary == tmp_path / "Documents"


def test_without_a_workspace_it_is_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert gateway(tmp_path).workspace.primary == tmp_path


@pytest.mark.parametrize("home", [True, False], ids=["home", "root"])
async def test_home_and_the_file_systems_root_are_no_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: bool
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path if home else "/")

    result = await gateway(tmp_path).pipeline.call("Glob", {"pattern": "*"}, ToolContext(call_id="c"))

    assert result.error_code == "E_NO_WORKSPACE"
    assert "--workspace" in result.text


def test_the_clients_roots_count_only_where_none_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    root = tmp_path / "project"
    root.mkdir()

    asking = gateway(tmp_path, ask_client_for_roots=True)
    assert asking.directories.wants_client_roots
    asking.adopt_client_roots([root])
    assert (asking.workspace.roots, asking.directories.wants_client_roots) == ((root,), False)

    assert not gateway(tmp_path, ask_client_for_roots=True, workspace=[root]).directories.wants_client_roots


def test_a_client_without_roots_leaves_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    asking = gateway(tmp_path, ask_client_for_roots=True)

    asking.adopt_client_roots([tmp_path / "not there"])

    assert asking.workspace.primary == tmp_path


def test_a_broken_rule_stops_the_start_and_is_quoted(tmp_path: Path) -> None:
    with pytest.raises(BrokenSettings, match="Bash\\(npm"):
        gateway(tmp_path, workspace=[tmp_path], permissions={"deny": ["Bash(npm"]})


def test_a_broken_upstream_file_stops_the_start_and_a_broken_entry_only_itself(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.json"
    file.write_text("{")
    with pytest.raises(ToolError, match=r"upstreams\.json"):
        gateway(tmp_path, workspace=[tmp_path], upstreams=[file])

    file.write_text(json.dumps({"mcpServers": {"good": {"command": "true"}, "bad": {"command": 5}}}))
    problems = gateway(tmp_path, workspace=[tmp_path], upstreams=[file]).problems()

    assert [(found["name"], found["reason_code"]) for found in problems] == [("bad", "config_error")]


def test_a_record_of_calls_that_cannot_be_written_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "work").mkdir()
    with pytest.raises(BrokenSettings, match="record of calls cannot be written"):
        gateway(tmp_path, workspace=[tmp_path / "work"], audit={"path": tmp_path / "file" / "audit.jsonl"})


def test_a_record_of_calls_in_the_workspace_stops_the_start(tmp_path: Path) -> None:  # R-AUDIT-1
    (tmp_path / "work").mkdir()
    (tmp_path / "alias").symlink_to(tmp_path / "work")
    for path in (tmp_path / "work" / "audit.jsonl", tmp_path / "alias" / "sub" / "audit.jsonl"):
        with pytest.raises(BrokenSettings, match="lies in the workspace"):
            gateway(tmp_path, workspace=[tmp_path / "work"], audit={"path": path})


async def test_what_sandboxes_of_a_killed_gateway_left_is_gone_before_any_command_runs(tmp_path: Path) -> None:
    work = tmp_path / "work"
    left = [work / name for name in (".mcp.json", ".claude", "goat-mcp.yaml")]
    for path in (*left, work / ".vscode"):
        path.mkdir(parents=True)
    (left[1] / "settings.json").write_text("{}")  # somebody's
    served = gateway(tmp_path, workspace=[work])
    notes = served.state.folder("sandbox") / "1-0.json"
    notes.write_text(json.dumps([[str(path) for path in left], {}]))

    async with served.running():
        with anyio.fail_after(30):
            while notes.exists():  # noqa: ASYNC110  # a thread removes them
                await anyio.sleep(0.01)

    assert sorted(path.name for path in work.iterdir()) == [".claude", ".vscode"]


async def test_reading_without_a_workspace_names_the_flag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    result = await gateway(tmp_path).pipeline.call("Read", {"file_path": "/etc/passwd"}, ToolContext(call_id="c"))
    assert result.error_code == "E_NO_WORKSPACE"


def test_spill_files_of_another_workspace_are_out_of_reach(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    spilled = gateway(tmp_path, workspace=[one]).services.spill.write("bash", "secret of one")

    with pytest.raises(ToolError) as caught:
        gateway(tmp_path, workspace=[two]).workspace.resolve(str(spilled))

    assert caught.value.code is ErrorCode.PATH_OUTSIDE
    assert str(gateway(tmp_path, workspace=[one]).workspace.resolve(str(spilled))) == str(spilled)


async def test_the_servers_own_state_is_out_of_reach_even_below_the_workspace(tmp_path: Path) -> None:
    served = gateway(tmp_path, workspace=[tmp_path], files={"read_before_write": "off"})
    token = served.state.folder("http") / "token"
    token.write_text("canary\n")
    (tmp_path / "link").symlink_to(token)
    (tmp_path / "mine.txt").write_text("canary\n")

    async def call(name: str, **arguments: Any) -> ToolResult:
        return await served.pipeline.call(name, arguments, ToolContext(call_id="c"))

    for path in (str(token), str(tmp_path / "link")):
        assert (await call("Read", file_path=path)).error_code == "E_PATH_OUTSIDE"
        assert (await call("Write", file_path=path, content="forged")).error_code == "E_PATH_OUTSIDE"
    assert (await call("Write", file_path=str(token) + ".new", content="x")).error_code == "E_PATH_OUTSIDE"
    assert (await call("Grep", pattern="canary")).text == str(tmp_path / "mine.txt")
    assert str(token) not in (await call("Glob", pattern="**/*", include_ignored=True)).text
    assert token.read_text() == "canary\n"


@pytest.mark.parametrize(("mode", "said"), [(0o777, "can be written by others"), (None, "cannot be used")])
def test_a_state_directory_that_is_not_safe_stops_the_start(tmp_path: Path, mode: int | None, said: str) -> None:
    state = tmp_path / "state"
    if mode is None:
        state.write_text("a file")
    else:
        state.mkdir()
        state.chmod(mode)

    with pytest.raises(BrokenSettings, match=said):
        gateway(tmp_path, workspace=[tmp_path])


def test_denied_tools_are_out_of_the_catalog(tmp_path: Path) -> None:
    names = [
        tool.spec.name for tool in gateway(tmp_path, workspace=[tmp_path], catalog={"deny": ["Bash"]}).catalog.tools()
    ]
    assert "Bash" not in names and "Read" in names


async def test_a_call_finds_a_tool_of_an_upstream_nobody_has_listed_yet(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": {"weather": {"command": sys.executable, "args": [str(WEATHER)]}}}))
    served = gateway(tmp_path, workspace=[tmp_path], upstreams=[file])

    async with served.running():
        result = await served.call("mcp__weather__current_weather", {"town": "Dunmere"}, ToolContext(call_id="c"))

    assert not result.is_error
    assert result.structured["town"] == "Dunmere"


async def test_a_name_that_no_upstream_can_have_waits_for_none(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": {"hangs": {"command": "sleep", "args": ["60"]}}}))
    served = gateway(tmp_path, workspace=[tmp_path], upstreams=[file])

    async with served.running():
        result = await served.call("Raed", {}, ToolContext(call_id="c"))
        states = [status.state for status in served.upstreams.status()]

    assert result.error_code == "E_TOOL_NOT_FOUND"
    assert states == [UpstreamState.IDLE], "it was not even started"


async def test_a_call_of_an_upstream_that_cannot_start_says_so(tmp_path: Path) -> None:
    file = tmp_path / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": {"dead": {"command": str(tmp_path / "no such program")}}}))
    served = gateway(tmp_path, workspace=[tmp_path], upstreams=[file])

    async with served.running():
        result = await served.call("mcp__dead__tool", {}, ToolContext(call_id="c"))

    assert result.error_code == "E_UPSTREAM_DOWN"
    assert "upstream dead is down" in result.text and "no such program" in result.text


async def test_where_a_command_would_begin_is_known_before_it_is_decided(tmp_path: Path) -> None:
    (tmp_path / "ws" / "sub").mkdir(parents=True)
    (tmp_path / "ws" / "link").symlink_to("sub")
    served = gateway(tmp_path, workspace=[tmp_path / "ws"])
    ctx = ToolContext(call_id="c")

    def begins(**arguments: str) -> str:
        return served.pipeline.admission.decide("Bash", {"command": "make", **arguments}, ctx)[0].directory

    assert begins() == f"{tmp_path}/ws"
    assert begins(workdir=f"{tmp_path}/ws/link") == f"{tmp_path}/ws/sub"
    served.services.sessions.of(ctx.session_key).cwd = tmp_path / "ws" / "sub"
    assert begins() == f"{tmp_path}/ws/sub"


def test_a_rule_for_a_server_that_nobody_configured_is_told(tmp_path: Path) -> None:
    served = gateway(tmp_path, workspace=[tmp_path], permissions={"deny": ["mcp__githbu__push", "mcp__mail", "Bash"]})

    assert [(problem["name"], problem["reason_code"]) for problem in served.problems()] == [
        ("mcp__githbu__push", "unknown_server"),
        ("mcp__mail", "unknown_server"),
    ]
