"""What a script's text tells: its commands, what exit code 1 means, and whether it would end the server."""

from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.processes.script_words import exit_1_is_an_answer, kill_of_this_server, only_command, simple_commands


@pytest.mark.parametrize(
    ("script", "commands"),
    [
        ("a b 'c d' \"e f\" g\\ h", [("a", "b", "c d", "e f", "g h")]),
        ("a; b && c || d | e & f\ng", [("a",), ("b",), ("c",), ("d",), ("e",), ("f",), ("g",)]),
        ("X=1 Y=2 sudo -u bob env Z=3 prog arg", [("prog", "arg")]),
        ("if test -f x; then echo y; fi", [("test", "-f", "x"), ("echo", "y")]),
        ("cat <<EOF | wc\nrm x\nEOF\nlast", [("cat", "EOF"), ("wc",), ("last",)]),
        ("cat <<-'E O'\n", [("cat", "E O")]),
        ("# note\na # b; c\nd#e", [("a",), ("d#e",)]),
        ("bash -lc 'x; y' z", [("bash", "-lc", "x; y", "z"), ("x",), ("y",)]),
        ("echo $(inner arg)", [("echo", "$"), ("inner", "arg")]),
        ("a \\\n b", [("a", "b")]),
        ("timeout -k 5 10 prog", [("prog",)]),
        ("", []),
    ],
)
def test_commands_of_a_script(script: str, commands: list[tuple[str, ...]]) -> None:
    assert [command.words for command in simple_commands(script)] == commands


@given(st.text(alphabet="ab '\"\\\n;|&<>$(){}#`=-", max_size=60))
def test_no_script_is_too_odd(script: str) -> None:
    simple_commands(script)
    only_command(script)


@pytest.mark.parametrize("script", ["cat a b", "cat 'a b'", " cat a\n", "cat -- a"])
def test_a_script_of_one_plain_command(script: str) -> None:
    command = only_command(script)

    assert command is not None and command.name == "cat"


@pytest.mark.parametrize(
    "script", ["cat a; b", "cat $x", "cat a > b", "cat a*", "cat `x`", "cat ~/a", "cat a &", "cat {a,b}", ""]
)
def test_a_script_that_is_more_than_one_plain_command(script: str) -> None:
    assert only_command(script) is None


@pytest.mark.parametrize(
    "script",
    [
        "grep x f",
        "cd a && egrep x f",
        "LC_ALL=C rg x",
        "find . -name x",
        "diff a b",
        "test -f x",
        "[ -f x ]",
        "[[ a ]]",
        "git diff --exit-code",
        "git -C sub --no-pager grep x",
        "cat f | grep x",
        "/usr/bin/fgrep x f",
        "command grep x f",
    ],
)
def test_exit_code_1_is_an_answer(script: str) -> None:
    assert exit_1_is_an_answer(script)


@pytest.mark.parametrize(
    "script", ["false", "grep x f; false", "git status", "python -c 'grep'", "echo grep", "", "git"]
)
def test_exit_code_1_is_a_failure(script: str) -> None:
    assert not exit_1_is_an_answer(script)


@pytest.mark.parametrize(
    "script",
    [
        "pkill -f goat-mcp",
        "pkill goat-mcp",
        "pkill -9 -f goat_mcp",
        "killall goat-mcp",
        "sudo pkill -KILL -f 'goat.mcp'",
        "true && bash -c 'pkill -f goat-mcp'",
        "echo $(pkill -fi GOAT-MCP)",
        "kill -9 $PPID",
        "kill -- -1",
        "kill -9 -1",
        pytest.param(f"kill {os.getpid()}", id="kill-own-pid"),
        pytest.param(f"kill -s TERM {os.getpid()}", id="kill-term-own-pid"),
        "pkill -f .",
        "pkill -x goat-mcp",
        "pkill --full goat-mcp",
    ],
)
def test_a_kill_that_would_hit_the_server_is_seen(script: str) -> None:
    assert kill_of_this_server(script) is not None


@pytest.mark.parametrize(
    "script",
    [
        "pkill -f my-dev-server-4711",
        "kill 999999999",
        "kill -1 999999999",
        "kill %1",
        "echo pkill -f goat-mcp",
        "pgrep -f goat-mcp",
        "pkill -P 4242 -f goat",
        "grep 'pkill goat-mcp' notes",
        "killall node-4711",
    ],
)
def test_other_kills_are_let_through(script: str) -> None:
    assert kill_of_this_server(script) is None
