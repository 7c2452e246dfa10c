"""Which test runs which of the agreed example cases, by the case's id; and why the others wait.

A case's id stands in the name or in the id of its test, so that a failure leads back to it. The attacks are
in `attack_cases`.
"""

from __future__ import annotations

import io
import re
import tokenize
from collections import Counter
from pathlib import Path

import pytest

from tests.contract.attack_cases import ATTACK_CASES, AttackCase, count_line

TESTS = Path(__file__).resolve().parents[1]

OF_TOOLS = {
    "edit-002": "tools/test_edit.py",
    "edit-004": "tools/test_edit.py",
    "edit-005": "tools/test_edit.py",
    "edit-007": "tools/test_edit.py",
    "edit-008": "tools/test_edit.py",
    "edit-010": "tools/test_edit.py",
    "edit-013": "tools/test_edit.py",
    "edit-014": "tools/test_edit.py",
    "edit-015": "tools/test_edit_read_state.py",
    "edit-016": "tools/test_edit_read_state.py",
    "edit-018": "tools/test_edit_read_state.py",
    "edit-019": "tools/test_edit.py",
    "edit-021": "tools/test_edit.py",
    "edit-022": "tools/test_edit.py",
    "edit-023": "tools/test_edit.py",
    "edit-027": "tools/test_edit.py",
    "edit-028": "tools/test_edit.py",
    "edit-030": "tools/test_edit.py",
    "write-003": "tools/test_write.py",
    "write-004": "tools/test_write.py",
    "write-005": "tools/test_write.py",
    "write-007": "tools/test_write.py",
    "read-002": "tools/test_read.py",
    "read-005": "tools/test_read.py",
    "read-006": "tools/test_read_large.py",
    "read-007": "tools/test_read.py",
    "read-008": "tools/test_read.py",
    "read-009": "tools/test_read_documents.py",
    "read-011": "tools/test_read_documents.py",
    "read-012": "tools/test_read_documents.py",
    "read-013": "tools/test_read.py",
    "read-015": "tools/test_read.py",
    "glob-003": "files/search/test_engine.py",
    "glob-004": "tools/test_glob.py",
    "glob-006": "tools/test_glob.py",
    "glob-007": "tools/test_glob.py",
    "glob-008": "tools/test_glob.py",
    "grep-001": "tools/test_grep.py",
    "grep-003": "tools/test_grep.py",
    "grep-004": "tools/test_grep.py",
    "grep-005": "tools/test_grep.py",
    "grep-006": "tools/test_grep.py",
    "grep-009": "tools/test_grep.py",
    "grep-010": "tools/test_grep.py",
    "grep-013": "tools/test_grep.py",
    "bash-001": "tools/test_bash.py",
    "bash-002": "tools/test_bash.py",
    "bash-006": "tools/test_bash.py",
    "bash-007": "tools/test_bash.py",
    "bash-008": "tools/test_bash.py",
    "bash-009": "tools/test_bash.py",
    "bash-012": "tools/test_bash_sandbox.py",
    "bash-013": "tools/test_bash.py",
    "bash-015": "tools/test_bash.py",
    "bash-017": "tools/test_bash_compression.py",
    "bash-018": "tools/test_bash.py",
    "task-001": "tools/test_task_output.py",
    "task-003": "tools/test_task_output.py",
    "task-005": "tools/test_task_output.py",
    "nb-001": "tools/test_notebook_edit.py",
    "nb-002": "tools/test_notebook_edit.py",
    "nb-003": "tools/test_notebook_edit.py",
    "web-002": "tools/test_web_fetch.py",
    "web-004": "tools/test_web_fetch.py",
    "web-005": "tools/test_web_fetch.py",
    "web-006": "tools/test_web_search.py",
    "ask-002": "e2e/test_asking.py",
    "cfg-001": "tools/test_config.py",
    "plan-001": "tools/test_exit_plan_mode.py",
    "perm-002": "calls/permissions/test_rules.py",
    "reg-001": "contract/test_registry_cases.py",
    "reg-003": "contract/test_registry_cases.py",
    "conc-001": "contract/test_concurrent_calls.py",
}
WHERE = {**OF_TOOLS, **{case.id: case.where for case in ATTACK_CASES if case.is_tested}}
COVERED = {case: where for case, where in WHERE.items() if where.endswith(".py")}
ATTACKS_OF_AN_AREA = {
    "SHELL": 58,
    "PROC": 19,
    "FILE": 29,
    "NET": 29,
    "PROTO": 13,
    "CONF": 4,
    "HOOK": 2,
    "HTTP": 18,
    "UP": 26,
    "AUDIT": 7,
    "PERM": 5,
    "LOAD": 1,
    "FOUND": 51,
}


def words_of(path: Path) -> str:
    """The names and strings of a file of tests: a comment runs nothing."""
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    return "\n".join(token.string for token in tokens if token.type in (tokenize.NAME, tokenize.STRING))


@pytest.mark.parametrize("where", sorted(set(COVERED.values())))
def test_each_case_is_named_by_a_test_in_its_file(where: str) -> None:
    words = words_of(TESTS / where)

    def is_named(case: str) -> bool:
        return re.search(case.replace("-", "[-_]") + r"(?!\d)", words, re.IGNORECASE) is not None

    assert [case for case, file in COVERED.items() if file == where and not is_named(case)] == []


def test_the_table_holds_every_tool_case_and_none_waits() -> None:
    assert len(OF_TOOLS) == 73
    assert {case for case in OF_TOOLS if case not in COVERED} == set()


def test_the_table_holds_every_attack_case_once_with_a_file_or_a_reason() -> None:
    assert Counter(case.area for case in ATTACK_CASES) == ATTACKS_OF_AN_AREA
    assert len({case.id for case in ATTACK_CASES}) == 262
    assert [case.id for case in ATTACK_CASES if case.is_tested and not (TESTS / case.where).is_file()] == []


def test_the_count_names_what_it_is_counted_against() -> None:
    tested = AttackCase("XX-1", "SHELL", "something", "tools/test_bash.py")
    waiting = AttackCase("XX-2", "SHELL", "something else", "a reason")

    assert count_line((tested, waiting, tested)) == "attack cases: 2 of 3 run as tests, 1 listed with a reason"
