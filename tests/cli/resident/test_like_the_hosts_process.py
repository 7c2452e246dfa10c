"""What a host has given its process, the session has: each start is compared with one that serves by itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.resident.reporter import ENDS_WITH, KILLS_ITSELF, LAUNCHER, UNCHECKED
from tests.cli.resident.user_accounts import Account

pytestmark = [pytest.mark.e2e, pytest.mark.linux_only("only Linux has a resident process")]

OFF = {"GOAT_MCP_RESIDENT": "0"}
_OF_EACH_START = {"how", "pid", "parent", "streams"}
_OURS = ("_GOAT_MCP_STARTED=", "_GOAT_MCP_LAUNCHER=", "GOAT_MCP_RESIDENT=")


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Generator[Account]:
    account = Account(tmp_path_factory.mktemp("account"))
    account.start_reporting()
    yield account
    account.end()


def seen(report: dict[str, Any]) -> dict[str, Any]:
    """What must be the same whichever way a server was started."""
    environment = [bytes.fromhex(one) for one in report["environment"]]
    kept = [one for one in environment if not one.startswith(tuple(map(str.encode, _OURS)))]
    return {name: value for name, value in report.items() if name not in _OF_EACH_START} | {"environment": kept}


def shell(script: str) -> list[str]:
    return ["/bin/bash", "-c", f'{script}; exec "$@"', "bash"]


@pytest.mark.parametrize(
    "around",
    [
        pytest.param([], id="as it is"),
        pytest.param(shell("umask 027"), id="umask"),
        pytest.param(["choom", "-n", "300", "--"], id="OOM score"),
        pytest.param(shell("ulimit -S -n 300; ulimit -S -c 0; ulimit -f 100000"), id="limits"),
        pytest.param(shell("ulimit -n 200"), id="hard limit of open files"),
        pytest.param(shell("mkdir gone; cd gone; rmdir ../gone"), id="deleted folder"),
        pytest.param(["nohup"], id="nohup"),
        pytest.param(shell("trap '' TERM USR1 CHLD ALRM"), id="ignored signals"),
        pytest.param(["env", "TZ=Asia/Tokyo", "HOME=/nowhere", "EMPTY=", "A=b=c"], id="variables"),
        pytest.param(["env", "-i"], id="no variables"),
        pytest.param(shell("export NOT_UTF8=$'a\\xff\\xfeb'; export LINES=$'two\\nlines'"), id="bytes"),
        pytest.param(
            shell('for i in {1..10}; do printf -v "BIG$i" "%0100000d" 0; export "BIG$i"; done'), id="1 MB of variables"
        ),
        pytest.param(shell("exec 9</dev/null"), id="descriptors of the host"),
    ],
)
def test_the_session_has_what_the_hosts_process_has(account: Account, around: Sequence[str]) -> None:
    if around[:2] == ["env", "-i"]:
        kept = (f"{name}={account.environment[name]}" for name in ("HOME", "XDG_RUNTIME_DIR"))
        around = [*around, *kept]

    by_itself = account.report("--one", "two words", around=around, variables=OFF)
    forked = account.report("--one", "two words", around=around)

    expected = seen(by_itself)
    # Nothing of the host's own files is anybody's but the launcher's.
    expected["inheritable"] = [number for number in expected["inheritable"] if number < 3]
    assert forked["how"] == "resident"
    assert seen(forked) == expected
    assert forked["parent"] == account.resident


def test_the_exit_status_is_the_servers(account: Account) -> None:
    report = account.report(f"{ENDS_WITH}37")

    assert (report["how"], report["exit"]) == ("resident", 37)


def test_a_server_that_a_signal_ends_ends_its_launcher_so(account: Account) -> None:
    report = account.report(KILLS_ITSELF)

    assert (report["how"], report["exit"]) == ("resident", -15)


@pytest.mark.parametrize(
    ("around", "reason"),
    [
        (["bwrap", "--dev-bind", "/", "/"], "no_new_privs"),
        (["setpriv", "--no-new-privs"], "no_new_privs"),
        (["unshare", "--user", "--map-root-user"], "user namespace|CapPrm"),
        (["unshare", "--mount"], "mnt namespace"),
        (["unshare", "--net"], "net namespace"),
        (["unshare", "--pid", "--fork"], "pid namespace"),
        (["unshare", "--ipc"], "ipc namespace"),
        (["unshare", "--uts"], "uts namespace"),
        pytest.param(["setpriv", "--bounding-set", "-sys_admin"], "Cap", marks=pytest.mark.root_only("drops a right")),
        (["setpriv", "--groups", "12345"], "Groups"),
        (["setpriv", "--ambient-caps", "+kill", "--inh-caps", "+kill"], "Cap"),
        (["nice", "-n", "5"], "nice value"),
        (["setarch", "-R"], "personality"),
        (["taskset", "-c", "0"], "Cpus_allowed"),
        (["chrt", "--batch", "0"], "scheduling policy"),
    ],
)
@pytest.mark.parametrize("program", [LAUNCHER, UNCHECKED], ids=["launcher", "resident"])
def test_a_confined_host_gets_its_own_process(
    account: Account, around: Sequence[str], reason: str, program: str
) -> None:
    if shutil.which(around[0]) is None or subprocess.run([*around, "true"], capture_output=True).returncode:
        pytest.skip(f"this machine cannot do {' '.join(around)}")

    report = account.report(around=around, program=program)

    assert re.search(reason, report["how"])
    assert report["parent"] != account.resident


@pytest.mark.parametrize("closed", ["1>&-", "2>&-"])
def test_a_closed_stream_is_served_by_the_hosts_process(account: Account, closed: str, tmp_path: Path) -> None:
    report = tmp_path / "report"
    program = f"""
import json, sys, goat_mcp_launch
from tests.cli.resident import reporter
class Main:
    main = staticmethod(lambda: open({str(report)!r}, "w").write(reporter.os.environ["_GOAT_MCP_STARTED"]))
sys.modules["goat_mcp.cli.main"] = Main
goat_mcp_launch.main()
"""
    command = ["/bin/bash", "-c", f'exec "$@" {closed}', "bash", sys.executable, "-c", program, "serve"]

    subprocess.run(command, env=account.environment, stdin=subprocess.DEVNULL, timeout=60, check=False)

    assert "Bad file descriptor" in report.read_text()


@pytest.mark.parametrize(
    ("words", "variables", "reason"),
    [
        (["--no-resident"], {}, "switched off"),
        ([], {"GOAT_MCP_RESIDENT": "off"}, "switched off"),
        (["--config", "/dev/fd/63"], {}, "open file of this process"),
        ([], {"GOAT_MCP_CONFIG": "/proc/self/fd/9"}, "open file of this process"),
        ([], {"GOAT_MCP_CALL": "x.y"}, "command of goat-mcp"),
        ([], {"PYTHONPATH": "src"}, "current folder"),
        ([], {"HOME": "here", "XDG_RUNTIME_DIR": ""}, "no absolute path"),
    ],
)
def test_what_is_unusual_is_served_by_the_hosts_process(
    account: Account, words: list[str], variables: dict[str, str], reason: str
) -> None:
    report = account.report(*words, variables=variables)

    assert reason in report["how"]
    assert not (account.folder / "work/here").exists()


@pytest.mark.root_only("becomes another user")
def test_a_socket_of_another_user_gets_nothing(tmp_path: Path) -> None:
    account = Account(tmp_path)
    account.start_reporting()
    (socket,) = account.sockets
    account.end()
    account.resident = 0
    socket.unlink()
    listener = f"""
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
os.chdir({str(socket.parent)!r})
listener.bind({socket.name!r})
os.setuid(65534)
listener.listen()
print("listens", flush=True)
connection, _ = listener.accept()
print(connection.recv(8), flush=True)
"""
    with subprocess.Popen([sys.executable, "-c", listener], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "listens\n"

        report = account.report()

        assert report["how"] == "another user listens where the resident process should"
        assert process.stdout.readline() == "b''\n"


@pytest.mark.root_only("becomes another user")
def test_another_user_gets_no_session(account: Account) -> None:
    (socket,) = account.sockets
    client = f"""
import os, socket
client = socket.socket(socket.AF_UNIX)
client.settimeout(30)
os.chdir({str(socket.parent)!r})
os.chmod({socket.name!r}, 0o777)
os.setuid(65534)
client.connect({socket.name!r})
print(client.recv(100))
"""

    socket.parent.chmod(0o711)
    done = subprocess.run([sys.executable, "-c", client], capture_output=True, text=True, timeout=60)
    socket.parent.chmod(0o700)

    assert done.stdout == "b''\n", done


@pytest.mark.root_only("looks into an undumpable process")
def test_the_resident_process_holds_no_secret(tmp_path: Path) -> None:
    names = (
        *("LANGSMITH_API_KEY", "LANGCHAIN_API_KEY", "LD_SDK_KEY", "LC_TOKEN", "OPENSSL_PASSPHRASE", "OPENAI_API_KEY"),
        *("OTEL_EXPORTER_OTLP_HEADERS", "PYDANTIC_AI_GATEWAY_API_KEY", "PYTHON_KEYRING_SECRET"),
    )
    account = Account(tmp_path, dict.fromkeys(names, "canary-of-a-host"))
    try:
        account.start_resident()

        process = Path(f"/proc/{account.resident}")
        for file in ("environ", "cmdline"):
            assert b"canary" not in (process / file).read_bytes()
        assert process.joinpath("cwd").readlink() == Path("/")
        assert {str(process.joinpath(f"fd/{number}").readlink()) for number in range(3)} == {"/dev/null"}
    finally:
        account.end()
