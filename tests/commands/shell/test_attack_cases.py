"""Every agreed shell attack, by its id, against the rules of its case and against far wider ones.

That nothing runs and what the audit records is shown where permissions are; here: no rule lets it pass.
"""

from __future__ import annotations

import time

import pytest

from goat_mcp.commands.shell.script_parsing import read_script
from goat_mcp.commands.shell.script_rules import CommandPattern, allowed_by, denied_by
from tests.commands.shell.attack_scripts import ALLOW, ATTACKS, DENIED, WIDE_ALLOW

_RM = CommandPattern.parse("rm:*")
_SEEN_ELSEWHERE = {
    *("BR-26-env_prefix_ldpreload", "BR-39-find_delete", "BR-40-find_fprint", "BR-48-rg_pre", "BR-49-sort_compress"),
    *("BR-51-sed_w", "BR-52-man_html", "BR-54-tar_checkpoint", "BR-55-history_write", "BR-57-redirect_append"),
    *("BR-61-dev_tcp", "BR-91-cd_write"),
}
"""Attacks without rm in them, or by an option that a deny rule for rm does not look into (best effort)."""


@pytest.mark.parametrize("case_id", ATTACKS)
def test_no_allow_rule_lets_an_attack_pass(case_id: str) -> None:
    script = read_script(ATTACKS[case_id])

    reason = allowed_by(script, [CommandPattern.parse(rule) for rule in ALLOW])

    assert reason


@pytest.mark.parametrize("case_id", ATTACKS)
def test_rules_for_every_program_of_the_attacks_let_none_pass(case_id: str) -> None:
    # R-SHELL-4: not for want of a rule, but for what the options and constructs do.
    script = read_script(ATTACKS[case_id])

    reason = allowed_by(script, [CommandPattern.parse(rule) for rule in WIDE_ALLOW])

    assert reason


@pytest.mark.parametrize("case_id", [case_id for case_id in ATTACKS if case_id not in _SEEN_ELSEWHERE])
def test_a_deny_rule_for_rm_meets_every_attack_that_runs_it(case_id: str) -> None:
    script = read_script(ATTACKS[case_id])

    assert denied_by(script, _RM) or script.hidden


@pytest.mark.parametrize("case_id", DENIED)
def test_a_deny_rule_meets_each_spelling(case_id: str) -> None:
    assert denied_by(read_script(DENIED[case_id]), _RM)


def test_br_deny_2_a_command_after_more_than_200_is_not_seen_and_that_is_said() -> None:
    script = read_script("true; " * 250 + "curl x")

    assert script.hidden == "more than 200 commands"
    assert script.not_plain == "more than 200 commands"


def test_br_84_fifty_plus_commands_do_not_hide_the_last_from_a_deny_rule() -> None:
    assert denied_by(read_script(ATTACKS["BR-84-fifty_plus"]), _RM)


def test_br_parse_1_nesting_of_40_kilobytes_is_answered_at_once() -> None:
    script = read_script("$(" * 20_000)

    assert script.hidden == script.not_plain == "more than 16 KB of text", "it was read"


@pytest.mark.parametrize(
    "piece",
    [
        *("$(", "(", "{ ", "`", "<(", '"$(', "$((", "a=(", "if a;then ", "[[ ", "${a:-", "f(){ ", "a|", "a;", "eval "),
        *("env ", "bash -c ", "sudo -z ", "find . -exec ", "xargs ", "<<a ", "bash <<a\n", "\\\n", "'", "x "),
        *("case a in a) ", "alias x=", "a=(1 2)\n", "{a,b}"),
    ],
)
def test_r_shell_6_just_under_16_kilobytes_of_anything_is_bounded_work(piece: str) -> None:
    computed_s = time.thread_time()

    script = read_script(piece * (16_384 // len(piece)))

    # 0.3 s here, and as much beside others that compute; the test is for what grows with the square of the length.
    assert time.thread_time() - computed_s < 10
    assert isinstance(script.hidden, str)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ls\x00", "a control character (U+0000)"),
        ("ls\r\nrm", "a control character (U+000D)"),
        ("ls \x1b[2K", "a control character (U+001B)"),
        ("ls\u200b", "an invisible character (U+200B)"),
        ("ls \u202e", "an invisible character (U+202E)"),
        ("ls \U000e0041", "an invisible character (U+E0041)"),
        ("ls\u00a0-a", "a blank that is no space (U+00A0)"),
        ("ls \ud800", "an invisible character (U+D800)"),
        ("é" * 9_000, "more than 16 KB of text"),
    ],
)
def test_r_shell_6_text_that_no_rule_may_judge(text: str, reason: str) -> None:
    script = read_script(text)

    assert (script.commands, script.not_plain, script.all_commands, script.hidden) == ((), reason, (), reason)
