"""Who decided about a recorded call, in words."""

from __future__ import annotations

import pytest

from goat_mcp.calls.audit.records import reason_of, why_of


@pytest.mark.parametrize(
    ("decision", "by", "rule", "why"),
    [
        ("allow", "rule", "rule Bash(ls)", "allow by rule Bash(ls)"),
        ("deny", "rule", "E_PERMISSION: rule Bash(curl *)", "deny by rule Bash(curl *)"),
        ("deny", "user", "E_PERMISSION: mode default", "denied by the user; asked by mode default"),
        ("deny", "nobody", "E_APPROVAL_PENDING: mode default", "nobody decided in time; asked by mode default"),
    ],
)
def test_a_decision_reads_as_a_sentence_without_its_error_code(decision: str, by: str, rule: str, why: str) -> None:
    assert why_of({"decision": decision, "by": by, "rule": rule}) == why


def test_the_reason_alone_has_no_error_code() -> None:
    assert reason_of({"by": "rule", "rule": "E_PERMISSION: rule Bash(curl *)"}) == "rule Bash(curl *)"
