"""What rules say about scripts: the decision itself, by the two functions the permission rules use."""

from __future__ import annotations

import pytest

from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.commands.shell.script_rules import CommandPattern, allowed_by, denied_by


def _patterns(*texts: str) -> list[CommandPattern]:
    return [CommandPattern.parse(text) for text in texts]


@pytest.mark.parametrize(
    "script",
    [
        "git status",
        "git status && ls src | wc",
        "git status;\nls 'a b' \"c\" # what is there",
        "echo a \\\n  b",
    ],
)
def test_a_plain_script_whose_commands_all_have_a_rule_passes(script: str) -> None:
    rules = _patterns("git status:*", "ls *", "wc:*", "echo *")

    reason = allowed_by(read_script(script), rules)

    assert reason == ""


def test_one_command_without_a_rule_is_named_in_the_reason() -> None:
    reason = allowed_by(read_script("git status; rm -r x"), _patterns("git status:*"))

    assert reason == "no rule allows `rm -r x`"


def test_an_exact_rule_is_the_users_own_word_for_any_command() -> None:
    script = read_script("find . -name x -delete")

    reason = allowed_by(script, _patterns("find . -name x -delete"))

    assert reason == ""


def test_a_deny_rule_meets_the_program_under_any_spelling() -> None:
    script = read_script("true && /bin/RM -fr x")

    denied = denied_by(script, CommandPattern.parse("rm:*"))

    assert denied
