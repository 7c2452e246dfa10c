"""Stdio upstreams whose entry wants a sandbox: real processes in a real bubblewrap (R-UP-8, R-PROC-2)."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.commands.sandbox.factory import SandboxServices, sandbox
from goat_mcp.commands.sandbox.options import SandboxOptions
from goat_mcp.commands.sandbox.sandbox import ConfinedProcess, Sandbox
from goat_mcp.state.directory import StateDirectory
from tests.commands.sandbox.boxes import is_protected, needs_bubblewrap
from tests.processes.processes import alive, wait_until
from tests.upstreams.fleet import SERVERS, fleet, load

pytestmark = [pytest.mark.anyio, needs_bubblewrap]
PYTHON = "/usr/bin/python3"


def made_sandbox(folder: Path) -> Sandbox:
    state = StateDirectory(folder / "state")
    return sandbox(
        SandboxOptions(),
        SandboxServices(
            roots=tuple,
            state=state,
            spill=lambda: state.folder("spill"),
            runs_unasked=lambda session_key, principal: False,
            is_protected=is_protected,
            run_at_the_end=lambda command: None,
        ),
    )


def entry(folder: Path, **keys: Any) -> dict[str, Any]:
    if not Path(PYTHON).exists():
        pytest.skip(f"needs {PYTHON}, which every sandbox shows")
    (folder / "server").mkdir(exist_ok=True)
    return {
        "command": PYTHON,
        "args": [str(SERVERS / "curious.py")],
        "cwd": str(folder / "server"),
        "sandbox": "required",
        "sandbox_read": [str(SERVERS)],
        **keys,
    }


async def test_it_works_and_reads_writes_and_reaches_no_more_than_its_entry_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    (home / "canary").write_text("canary-up")
    (tmp_path / "server").mkdir()
    (tmp_path / "server/own").write_text("own")
    (tmp_path / "data").mkdir()
    box = made_sandbox(tmp_path)
    entries = {"up": entry(tmp_path, sandbox_write=[str(tmp_path / "data")])}

    with socket.create_server(("127.0.0.1", 0)) as port:
        async with fleet(tmp_path, entries, confine=box.confine_upstream) as running:

            async def look(kind: str, what: object) -> str:
                return (await running.call("mcp__up__look", {"kind": kind, "what": str(what)})).text

            seen = {
                "own": await look("read", tmp_path / "server/own"),
                "home": await look("read", home / "canary"),
                "state": await look("read", tmp_path / "state"),
                "outside": await look("write", tmp_path / "x"),
                "own folder": await look("write", tmp_path / "server/x"),
                "data": await look("write", tmp_path / "data/x"),
                "network": await look("connect", port.getsockname()[1]),
            }

    assert seen == {
        "own": "own",
        "home": "FileNotFoundError",
        "state": "FileNotFoundError",
        "outside": seen["outside"],
        "own folder": "OSError",
        "data": "written",
        "network": "ConnectionRefusedError",
    }
    assert not (tmp_path / "x").exists()
    assert (tmp_path / "data/x").exists()


async def test_with_the_network_allowed_it_reaches_this_machine(tmp_path: Path) -> None:
    entries = {"up": entry(tmp_path, sandbox_network="allow")}
    with socket.create_server(("127.0.0.1", 0)) as port:
        async with fleet(tmp_path, entries, confine=made_sandbox(tmp_path).confine_upstream) as running:
            arguments = {"kind": "connect", "what": str(port.getsockname()[1])}
            assert (await running.call("mcp__up__look", arguments)).text == "connected"


async def test_nothing_of_it_is_left_when_it_is_stopped(tmp_path: Path) -> None:
    pids: list[int] = []
    async with fleet(tmp_path, {"up": entry(tmp_path)}, confine=made_sandbox(tmp_path).confine_upstream) as running:
        await running.call("mcp__up__look", {"kind": "environment", "what": ""})
        from goat_mcp.processes.process_table import command_line, living_processes

        pids = [one.pid for one in living_processes() if str(SERVERS / "curious.py") in command_line(one.pid)]

    assert len(pids) >= 2  # bubblewrap's own, and the server
    assert wait_until(lambda: not any(map(alive, pids)), 5)


async def test_where_none_can_be_made_a_required_one_starts_nothing(tmp_path: Path) -> None:
    # BX-15
    async def none(options: SandboxOptions, directory: Path) -> ConfinedProcess | None:
        return await Sandbox(
            SandboxOptions(),
            made_sandbox(tmp_path)._policy,  # pyright: ignore[reportPrivateUsage]  # never asked
            runs_unasked=lambda session_key, principal: False,
            confinements=tuple,
            placeholders=made_sandbox(tmp_path)._placeholders,  # pyright: ignore[reportPrivateUsage]  # never asked
            temporary=made_sandbox(tmp_path)._temporary,  # pyright: ignore[reportPrivateUsage]  # never asked
        ).confine_upstream(options, directory)

    async with fleet(tmp_path, {"up": entry(tmp_path)}, confine=none) as running:
        await running.until(lambda: running.status("up").reason_code != "")

        status = running.status("up")
        assert status.reason_code == "sandbox_unavailable"
        assert "sandbox unavailable" in status.detail


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"sandbox": "on"}, "sandbox: "),
        ({"sandbox": None, "sandbox_read": ["/x"]}, "write sandbox: auto or required"),
        ({"sandbox_read": ["relative"]}, "'relative' is not an absolute path"),
        ({"sandbox_network": "some"}, "sandbox_network: "),
    ],
)
def test_a_key_that_cannot_be_used_leaves_the_entry_out_and_is_named(
    tmp_path: Path, keys: dict[str, Any], says: str
) -> None:
    files = load(tmp_path, {"up": {"command": "x", **{k: v for k, v in {"sandbox": "auto", **keys}.items() if v}}})

    assert files.configs == ()
    assert says in files.problems[0].message


def test_the_keys_do_not_go_with_an_address(tmp_path: Path) -> None:
    files = load(tmp_path, {"up": {"url": "http://127.0.0.1:1/mcp", "sandbox": "auto"}})

    assert files.problems[0].message == "sandbox: does not go with url, only with command; leave it out"
