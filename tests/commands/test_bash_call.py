"""What a script says about the exit code 1, and which scripts show a file."""

from __future__ import annotations

import pytest

from goat_mcp.commands.bash_call import exit_1_is_an_answer
from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.files.editing.read_state import shown_file


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
    assert exit_1_is_an_answer(read_script(script).all_commands)


@pytest.mark.parametrize(
    "script", ["false", "grep x f; false", "git status", "python -c 'grep'", "echo grep", "", "git"]
)
def test_exit_code_1_is_a_failure(script: str) -> None:
    assert not exit_1_is_an_answer(read_script(script).all_commands)


@pytest.mark.parametrize("script", ["cat 'a b'", " cat a\n", "cat -- a", "/bin/cat a # all of it", "sed -n 1p a"])
def test_a_plain_command_shows_a_file(script: str) -> None:
    (words,) = read_script(script).commands

    assert shown_file(words) is not None


@pytest.mark.parametrize("script", ["cat a; b", "cat $x", "cat a > b", "cat a*", "cat `x`", "cat ~/a", "cat a &", ""])
def test_other_scripts_are_not_one_plain_command(script: str) -> None:
    assert len(read_script(script).commands) != 1
