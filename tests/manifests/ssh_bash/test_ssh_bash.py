"""ssh_bash: commands on a host of the settings, over a real OpenSSH server. Contract: tools.md, section 3."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.context import ToolContext
from tests.manifests.calling import Caller
from tests.manifests.ssh_bash.ssh_server import SshServer, ssh_server

pytestmark = [pytest.mark.anyio, pytest.mark.xdist_group("sshd")]

EXEC = "ssh_bash__exec"
_GONE_S = 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[SshServer]:
    with ssh_server(tmp_path_factory.mktemp("ssh") / "server") as server:
        yield server


def caller(folder: Path, server: SshServer, **settings: Any) -> Caller:
    return Caller(folder, {"tools": {"ssh_bash": {"hosts": {"far": server.host()}}}, **settings})


async def pid_in(file: Path) -> int:
    """The number a command writes there, as soon as it has."""
    await holds(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(await anyio.Path(file).read_text())


async def gone(*pids: int) -> bool:
    try:
        await holds(lambda: not any(map(runs, pids)))
    except TimeoutError:
        return False
    return True


async def holds(condition: Callable[[], bool]) -> None:
    """Wait until it does: other machines tell us nothing of their processes."""
    with anyio.fail_after(_GONE_S):
        while not condition():  # noqa: ASYNC110  # see above: there is no event
            await anyio.sleep(0.05)


def soon(_: ToolContext) -> float:
    """In place of the 45 s that a call may wait."""
    return 4.0


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def test_a_command_answers_with_both_outputs_and_its_exit_code(tmp_path: Path, server: SshServer) -> None:
    result = await caller(tmp_path, server).call(EXEC, host="far", command="echo out; echo err >&2; cat; echo $0")

    value = result.structured
    assert json.loads(result.text) == value
    assert value == {
        "host": "far",
        "stdout": "out\nbash",
        "stderr": "err",
        "exitCode": 0,
        "timedOut": False,
        "durationMs": value["durationMs"],
    }


async def test_another_exit_code_is_an_error_that_holds_the_same_json(tmp_path: Path, server: SshServer) -> None:
    result = await caller(tmp_path, server).call(EXEC, host="far", command="echo out; exit 3")

    text, *rest = result.text.split("\n")
    assert (result.error_code, rest) == ("E_EXIT", ["Exit code 3", "[E_EXIT]"])
    assert (json.loads(text)["stdout"], json.loads(text)["exitCode"]) == ("out", 3)


@pytest.mark.parametrize(
    "command",
    [
        "printf '%s' \"it's a \\\\ 'b' \\\"c\\\" \\$HOME !x\"",
        "cat <<'E'\nline 1\n\n$x `y`\nE",
        "printf ü漢🎉; # the end",
        "printf %s '" + "x" * 5000 + "'",
        "printf '%s' a\n\n\n",
        "printf -- -n",
    ],
)
async def test_a_command_arrives_as_it_was_written(tmp_path: Path, server: SshServer, command: str) -> None:
    here = await caller(tmp_path, server).value("bash__exec", command=command)

    there = await caller(tmp_path, server).value(EXEC, host="far", command=command)

    assert there["stdout"] == here["stdout"]


async def test_the_command_is_in_no_arguments_of_ours_and_gets_no_terminal(tmp_path: Path, server: SshServer) -> None:
    one = caller(tmp_path, server)

    value = await one.value(EXEC, host="far", command="tty; ps -eo args | grep -c '^[/]*[a-z/]*ssh .*s3cr[e]t'; true")

    assert value["stdout"] == "not a tty\n0"


def _refuse_all(agent: socket.socket) -> None:
    """An agent that answers nothing would keep ssh waiting, which asks it for keys."""
    with suppress(OSError):  # the test is over
        while True:
            agent.accept()[0].close()


@pytest.mark.parametrize("command", ["echo $SSH_AUTH_SOCK", "echo $DISPLAY"])
async def test_neither_agent_nor_display_are_forwarded(
    tmp_path: Path, server: SshServer, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "agent"))
    listener.listen()
    threading.Thread(target=_refuse_all, args=[listener], daemon=True).start()
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    monkeypatch.setenv("DISPLAY", ":7")

    value = await caller(tmp_path, server).value(EXEC, host="far", command=command)

    listener.close()
    assert (value["stdout"], value["exitCode"]) == ("", 0)


async def test_a_timeout_ends_the_remote_group_even_what_ignores_term(tmp_path: Path, server: SshServer) -> None:
    one = caller(tmp_path, server)
    deaf = f"bash -c 'trap : TERM; echo $$ > {tmp_path}/deaf; while :; do sleep 600; done'"
    command = f"echo so far; sleep 600 & echo $! > {tmp_path}/child; {deaf}"

    result = await one.call(EXEC, host="far", command=command, timeout=3)

    value = json.loads(result.text.split("\n")[0])
    assert (result.error_code, value["stdout"], value["timedOut"]) == ("E_TIMEOUT", "so far", True)
    assert await gone(await pid_in(tmp_path / "child"), await pid_in(tmp_path / "deaf"))


async def test_cancelling_the_call_ends_the_remote_group(tmp_path: Path, server: SshServer) -> None:
    one = caller(tmp_path, server)
    pids: list[int] = []

    async with anyio.create_task_group() as group:

        async def call() -> None:
            command = f"sleep 600 & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/shell; wait"
            await one.call(EXEC, host="far", command=command)

        group.start_soon(call)
        pids += [await pid_in(tmp_path / "child"), await pid_in(tmp_path / "shell")]
        assert all(map(runs, pids))
        group.cancel_scope.cancel()

    assert await gone(*pids)


async def test_a_connection_that_breaks_ends_the_remote_group(tmp_path: Path, server: SshServer) -> None:
    one = caller(tmp_path, server)
    told: list[str] = []
    child = 0

    async with anyio.create_task_group() as group:

        async def call() -> None:
            # The parent of the group's first shell is the server's process for this connection.
            command = f"ps -o ppid= -p $PPID > {tmp_path}/connection; sleep 600 & echo $! > {tmp_path}/child; wait"
            told.append(await one.problem(EXEC, host="far", command=command))

        group.start_soon(call)
        child = await pid_in(tmp_path / "child")
        os.kill(int((tmp_path / "connection").read_text()), 9)

    assert await gone(child)
    assert told[0].endswith("[E_NETWORK]")


async def test_what_runs_long_is_a_task_and_stopping_it_ends_the_remote_group(
    tmp_path: Path, server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToolContext, "wait_left_s", soon)
    one = caller(tmp_path, server)
    command = f"echo begun; sleep 600 & echo $! > {tmp_path}/child; wait"

    value = await one.value(EXEC, host="far", command=command, timeout=300)
    child = await pid_in(tmp_path / "child")
    shown = await one.call("TaskOutput", task_id=value["taskId"], block=False)
    stopped = await one.call("TaskStop", task_id=value["taskId"])

    assert (value["stdout"], value["exitCode"]) == ("begun", None)
    assert f"Task {value['taskId']}: running" in shown.text
    assert stopped.text.startswith(f"Stopped task {value['taskId']} (far: echo begun;")
    assert await gone(child)


async def test_what_a_command_leaves_running_neither_holds_the_call_nor_stays(
    tmp_path: Path, server: SshServer
) -> None:
    one = caller(tmp_path, server)

    value = await one.value(EXEC, host="far", command=f"sleep 600 & echo $! > {tmp_path}/left; echo done", timeout=40)

    assert (value["stdout"], value["exitCode"]) == ("done", 0)
    assert await gone(await pid_in(tmp_path / "left"))


@pytest.mark.parametrize("output", ["", "</dev/null >/dev/null 2>&1"], ids=["holds the output", "does not"])
async def test_nor_does_what_has_a_session_of_its_own(
    tmp_path: Path, server: SshServer, output: str
) -> None:  # R-PROC-6
    file = tmp_path / "left"
    stubborn = "trap : TERM; for _ in {1..600}; do sleep 0.1; done"  # longer than the call may take
    command = (
        f"setsid bash -c 'echo $$ > {file}; {stubborn}' {output} & until [ -s {file} ]; do sleep 0.1; done; echo x"
    )

    value = await caller(tmp_path, server).value(EXEC, host="far", command=command, timeout=40)

    assert (value["stdout"], value["exitCode"]) == ("x", 0)
    assert await gone(await pid_in(file))


async def test_a_timeout_ends_what_has_a_session_of_its_own(tmp_path: Path, server: SshServer) -> None:
    file = tmp_path / "left"
    command = f"setsid bash -c 'echo $$ > {file}; sleep 600' & sleep 600"

    result = await caller(tmp_path, server).call(EXEC, host="far", command=command, timeout=3)

    assert result.error_code == "E_TIMEOUT"
    assert await gone(await pid_in(file))


async def test_a_host_whose_key_is_not_known_is_not_trusted(tmp_path: Path, server: SshServer) -> None:
    hosts = {"new": server.host(known_hosts=str(tmp_path / "none"))}
    one = Caller(tmp_path, {"tools": {"ssh_bash": {"hosts": hosts}}})

    told = await one.problem(EXEC, host="new", command=f"touch {tmp_path}/ran")

    assert told.split("\n")[1:] == [
        "ssh to new failed: Host key verification failed.",
        "Tell the user: the host's key has to be in the known_hosts file before; nothing here trusts a new one.",
        "[E_NETWORK]",
    ]
    assert not (tmp_path / "none").exists()
    assert not (tmp_path / "ran").exists()


async def test_a_host_that_takes_no_key_is_asked_for_no_password(tmp_path: Path, server: SshServer) -> None:
    hosts = {"shut": server.host(identity_file=str(tmp_path / "none"))}
    one = Caller(tmp_path, {"tools": {"ssh_bash": {"hosts": hosts}}})

    told = await one.problem(EXEC, host="shut", command="id")

    assert "Permission denied (" in told
    assert told.endswith("the host took none of the keys; see identity_file, or the ssh agent.\n[E_NETWORK]")


async def test_a_host_that_does_not_answer_is_a_network_error(tmp_path: Path) -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))  # and does not listen
        hosts = {"down": {"address": "127.0.0.1", "port": bound.getsockname()[1]}}
        one = Caller(tmp_path, {"tools": {"ssh_bash": {"hosts": hosts}}})

        told = await one.problem(EXEC, host="down", command="id")

    assert "Connection refused" in told
    assert told.endswith("[E_NETWORK]")


async def test_an_address_is_never_an_option_of_ssh(tmp_path: Path) -> None:
    hosts = {"evil": {"address": f"-oProxyCommand=touch {tmp_path}/ran"}}
    one = Caller(tmp_path, {"tools": {"ssh_bash": {"hosts": hosts}}})

    await one.problem(EXEC, host="evil", command="id")

    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("hosts", "told"),
    [
        (
            {"b": {"address": "b.test"}, "a": {"address": "a.test"}},
            ["host: no host 'c' in the settings", "Known are a, b."],
        ),
        ({}, ["the settings name no hosts", "Tell the user: hosts are named in the settings, "]),
        ({"c": {"address": "c.test", "colour": "red"}}, ["tools.ssh_bash.hosts.c.colour: ", "Tell the user"]),
    ],
    ids=["another", "none", "broken"],
)
async def test_a_host_that_the_settings_do_not_name_rightly_is_no_host(
    tmp_path: Path, hosts: dict[str, Any], told: list[str]
) -> None:
    problem = await Caller(tmp_path, {"tools": {"ssh_bash": {"hosts": hosts}}}).problem(EXEC, host="c", command="id")

    assert [line.startswith(part) for line, part in zip(problem.split("\n"), told, strict=False)] == [True, True], (
        problem
    )


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"command": "a\0b"}, "holds a NUL character"),
        ({"command": "x" * 60_001}, "command: is over 60000 bytes long"),
        ({"command": "id", "timeout": 301}, "timeout: wants at most 300"),
        ({"command": "id", "env": {}}, "env: unknown field"),
    ],
)
async def test_what_cannot_be_sent_is_said_before(tmp_path: Path, arguments: dict[str, Any], told: str) -> None:
    hosts = {"far": {"address": "127.0.0.1", "port": 1}}
    one = Caller(tmp_path, {"tools": {"ssh_bash": {"hosts": hosts}}})

    assert told in await one.problem(EXEC, host="far", **arguments)
