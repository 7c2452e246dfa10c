"""`goat-mcp list`: servers as they answer, what they can do, and the one that hangs."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal_session import TerminalSession
from tests.cli.test_call import run
from tests.quick_start import goat_command
from tests.upstreams.fleet import server
from tests.upstreams.test_downloads import slow_program

pytestmark = pytest.mark.e2e
WITHIN_S = 8.0
"""The contract: a list of ten servers, one of which hangs."""
MORE_FOR_A_BUSY_MACHINE_S = 12.0


def upstreams(folder: Path, entries: dict[str, Any]) -> str:
    file = folder / "upstreams.json"
    file.write_text(json.dumps({"mcpServers": entries}))
    return str(file)


def environment(folder: Path, **more: str) -> dict[str, str]:
    state = str(folder / "state")
    return {"PATH": "/usr/bin:/bin", "HOME": str(folder), "GOAT_MCP_STATE_DIR": state, **more}


def on_a_terminal(folder: Path, *words: str, columns: int = 80) -> TerminalSession:
    home = {name: value for name, value in environment(folder).items() if name != "PATH"}
    return TerminalSession(goat_command(*words), cwd=folder, variables=home, columns=columns)


def lines_of(session: TerminalSession) -> list[str]:
    return [line.rstrip() for line in session.shown.splitlines()]


# ISO-1, LIF-8
def test_of_ten_servers_the_nine_that_answer_are_shown_first_and_the_one_that_hangs_is_named(tmp_path: Path) -> None:
    quick = {f"s{number}": server("raw.py") for number in range(8)}
    file = upstreams(tmp_path, {"hangs": server("raw.py", "hang"), **quick, "dead": {"command": "nobody-has-this"}})
    began_s = time.monotonic()
    heard: list[tuple[float, str]] = []
    with subprocess.Popen(
        goat_command("list", "--upstreams", file),
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=(tmp_path / "shown").open("w"),
        stderr=subprocess.PIPE,
        text=True,
        env=environment(tmp_path),
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            heard.append((time.monotonic() - began_s, line.rstrip("\n")))
    took_s = time.monotonic() - began_s

    servers = [line.split("\t") for _, line in heard if "\t" in line]
    assert {(name, state) for name, state, *_ in servers[:9]} == {("dead", "failed"), *((s, "ready") for s in quick)}
    assert servers[9][:2] == ["hangs", "still starting"]
    assert "goat-mcp list --server hangs" in servers[9][4]
    assert took_s < WITHIN_S + MORE_FOR_A_BUSY_MACHINE_S
    assert process.returncode == 0
    assert {line.split("\t")[3] for line in (tmp_path / "shown").read_text().splitlines()[1:]} == {"built in", *quick}
    assert not any(line.startswith("{") for _, line in heard), "JSON log lines are not for people"


@pytest.mark.real_processes
def test_one_that_never_answered_is_not_waited_for_before_it_is_ended(tmp_path: Path) -> None:
    # It ignores the end of its input and TERM alike: only KILL ends it, a second later.
    stubborn = tmp_path / "stubborn.py"
    stubborn.write_text("import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)\n")
    file = upstreams(tmp_path, {"stubborn": {"command": "python3", "args": [str(stubborn)]}})
    began_s = time.monotonic()

    found = run("list", "--json", "--upstreams", file, cwd=tmp_path)

    assert time.monotonic() - began_s < WITHIN_S + MORE_FOR_A_BUSY_MACHINE_S
    (shown,) = json.loads(found.stdout)["servers"]
    assert (shown["name"], shown["state"], shown["reason_code"], shown["tools"]) == (
        "stubborn",
        "still starting",
        "starting",
        0,
    )
    assert "it has 30 s to answer" in shown["detail"]
    assert found.stderr == ""


def test_a_terminal_of_80_columns_shows_whole_names_by_server(tmp_path: Path) -> None:
    name = "a_server_with_quite_a_long_name"
    file = upstreams(tmp_path, {name: server("raw.py")})

    with on_a_terminal(tmp_path, "list", "--upstreams", file) as session:
        assert session.end() == 0

    lines = lines_of(session)
    assert any(line.split()[:4] == ["server", "state", "tools", "time"] for line in lines)
    assert any(re.fullmatch(rf"{name} +ready +6 +\d+\.\d s", line) for line in lines)
    assert lines.index("built in (18 tools)") < lines.index(f"{name} (6 tools)")
    assert "Read  reads; risk none" in lines and "Bash  runs programs; risk critical" in lines
    assert f"mcp__{name}__ping  may change things; risk high" in lines
    assert max(map(len, lines)) <= 80
    assert not any(line.startswith("{") for line in lines), "no JSON for people"


def test_a_wide_terminal_has_one_table_for_each_server(tmp_path: Path) -> None:
    with on_a_terminal(tmp_path, "list", columns=160) as session:
        assert session.end() == 0

    assert any(line.split("  ")[0] == "tool" and line.endswith("what it does") for line in lines_of(session))
    assert any(re.match(r"Bash +runs programs +critical +Run a bash script", line) for line in lines_of(session))


def test_a_terminal_shows_who_is_waited_for_and_a_first_download_is_not_a_failure(tmp_path: Path) -> None:
    file = upstreams(tmp_path, {"npm": slow_program(tmp_path, "npx"), "quick": server("raw.py")})

    with on_a_terminal(tmp_path, "list", "--upstreams", file) as session:
        session.wait_until(
            lambda: any(re.match(r"quick +ready", line) for line in lines_of(session)), "nobody answered"
        )
        session.wait_until(lambda: any(re.match(r"npm +starting", line) for line in lines_of(session)), "who is late?")
        assert session.end() == 0
    with on_a_terminal(tmp_path, "list", "--server", "npm", "--upstreams", file) as waiting:
        waiting.wait_for("starting")
        (tmp_path / "downloaded").touch()
        assert waiting.end() == 0

    shown = " ".join(" ".join(lines_of(session)).split())
    assert "npm still starting 0 it is still starting; npx may be downloading it first" in shown
    assert "Not ready yet: npm." in shown and "failed" not in shown
    assert "mcp__npm__ping  may change things; risk high" in lines_of(waiting)
    assert not any(line.startswith("mcp__quick__") for line in lines_of(waiting))


def test_json_has_the_servers_and_what_is_known_of_each_tool_beside_the_list(tmp_path: Path) -> None:
    file = upstreams(tmp_path, {"s": server("raw.py"), "dead": {"command": "nobody-has-this"}})

    done = run("list", "--json", "--upstreams", file, cwd=tmp_path)

    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    states = {one["name"]: (one["state"], one["reason_code"], one["tools"]) for one in document["servers"]}
    assert states == {"s": ("ready", "", 6), "dead": ("failed", "command_not_found", 0)}
    assert document["about"]["mcp__s__ping"] == {"server": "s", "effects": ["may change things"], "risk": "high"}
    assert document["about"]["Bash"]["effects"] == ["runs programs"]
    assert [one["name"] for one in document["problems"]] == ["dead"]


def test_a_word_selects_tools_and_says_of_how_many(tmp_path: Path) -> None:
    file = upstreams(tmp_path, {"s": server("raw.py")})

    by_name = run("list", "GREP", "--preset", "read_only", cwd=tmp_path)
    by_server = run("list", "s", "--server", "s", "--json", "--upstreams", file, cwd=tmp_path)
    nothing = run("list", "Gerp", cwd=tmp_path)

    assert "Grep" in [line.split("\t")[0] for line in by_name.stdout.splitlines()]
    assert re.search(r"^\d of \d+ tools match(es)? 'GREP'$", by_name.stderr, re.MULTILINE)
    document = json.loads(by_server.stdout)
    assert (document["matched"], document["of"], len(document["tools"])) == (6, 24, 6)
    assert (nothing.stdout, nothing.stderr) == ("", "0 of 18 tools match 'Gerp'; did you mean Grep?\n")


def test_one_server_is_started_alone_and_its_end_is_the_exit_status(tmp_path: Path) -> None:
    file = upstreams(
        tmp_path,
        {"one": server("raw.py"), "two": server("raw.py", "hang"), "dead": {"command": "nobody-has-this"}},
    )

    one = run("list", "--server", "one", "--json", "--upstreams", file, cwd=tmp_path)
    dead = run("list", "--server", "dead", "--upstreams", file, cwd=tmp_path)

    assert one.returncode == 0
    assert [found["name"] for found in json.loads(one.stdout)["servers"]] == ["one"]
    assert {tool["name"].split("__")[1] for tool in json.loads(one.stdout)["tools"]} == {"one"}
    assert dead.returncode == 4 and dead.stderr.startswith("dead\tfailed\t0\t")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--server", "on"), "no upstream is called 'on'; did you mean one?"),
        (("--servr", "one"), "no option --servr; did you mean --server?"),
        (("--mode", "fast"), "fast"),
    ],
)
def test_typical_mistakes_are_wrong_usage_and_say_what_to_write(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    file = upstreams(tmp_path, {"one": server("raw.py")})

    wrong = run("list", *words, "--upstreams", file, cwd=tmp_path)
    as_json = run("list", *words, "--json", "--upstreams", file, cwd=tmp_path)

    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert said in wrong.stderr
    assert (as_json.returncode, as_json.stdout) == (1, "")
    assert said in json.loads(as_json.stderr)["error"]["message"]


def test_a_known_server_that_hangs_now_keeps_its_tools(tmp_path: Path) -> None:
    # ISO-4
    program = tmp_path / "server.sh"
    works = " ".join([server("raw.py")["command"], *server("raw.py")["args"]])
    program.write_text(f"#!/bin/sh\nexec {works}\n")
    program.chmod(0o755)
    file = upstreams(tmp_path, {"s": {"command": str(program)}})
    assert run("list", "--upstreams", file, cwd=tmp_path).returncode == 0
    program.write_text("#!/bin/sh\nexec sleep 600\n")

    now = run("list", "--upstreams", file, cwd=tmp_path)

    assert "mcp__s__ping" in now.stdout
    assert "s\tstill starting\t6\t\t" in now.stderr and "its tools are as an earlier run saw them" in now.stderr


def test_a_tool_has_one_risk_and_the_same_words_wherever_it_is_shown(tmp_path: Path) -> None:
    file = upstreams(tmp_path, {"s": server("good.py")})
    listed = json.loads(run("list", "--json", "--upstreams", file, cwd=tmp_path).stdout)["about"]
    inspected = json.loads(run("inspect", "--json", "--upstreams", file, cwd=tmp_path).stdout)["tools"]

    assert {tool["name"]: (tool["risk"], tool["effects"]) for tool in inspected} == {
        name: (about["risk"], about["effects"]) for name, about in listed.items()
    }
    for name in ("Bash", "Read", next(name for name in listed if name.startswith("mcp__s__"))):
        page = json.loads(run("docs", name, "--json", "--upstreams", file, cwd=tmp_path).stdout)
        words = {"Bash": ["command=ls"], "Read": ["file_path=@x"]}.get(name, [])
        decided = json.loads(run("why", name, *words, "--json", "--upstreams", file, cwd=tmp_path).stdout)
        assert (page["risk"], page["effects"]) == (listed[name]["risk"], listed[name]["effects"])
        assert (decided["tool_risk"], decided["effects"]) == (listed[name]["risk"], listed[name]["effects"])


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_a_secret_that_a_server_writes_as_it_ends_is_not_shown(tmp_path: Path, words: tuple[str, ...]) -> None:
    script = "import os, sys; sys.exit(os.environ['MY_TOKEN'])"
    entry = {"command": sys.executable, "args": ["-c", script], "env": {"MY_TOKEN": "abcdEFGH1234xyz"}}
    file = upstreams(tmp_path, {"talks": entry})

    done = run("list", "--upstreams", file, *words, cwd=tmp_path)

    assert "start_failed" in done.stdout + done.stderr
    assert "[redacted]" in done.stdout + done.stderr
    assert "abcdEFGH1234xyz" not in done.stdout + done.stderr


def test_nor_is_it_on_a_terminal(tmp_path: Path) -> None:
    script = "import os, sys; sys.exit(os.environ['MY_TOKEN'])"
    entry = {"command": sys.executable, "args": ["-c", script], "env": {"MY_TOKEN": "abcdEFGH1234xyz"}}
    file = upstreams(tmp_path, {"talks": entry})

    with on_a_terminal(tmp_path, "list", "--upstreams", file) as session:
        session.end(60)

        assert "[redacted]" in session.shown
        assert "abcdEFGH1234xyz" not in session.shown
