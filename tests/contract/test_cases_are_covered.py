"""Which test runs which of the agreed example cases, by the case's id; and why the others wait.

A case's id stands in the name or in the id of its test, so that a failure leads back to it.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
WAITS_FOR_RULES = "rules with patterns are not built yet"
WAITS_FOR_SANDBOX = "there is no sandbox yet"
WAITS_FOR_COMPRESSION = "there is no compressed output yet"

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
    "glob-003": "search/test_engine.py",
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
    "bash-012": WAITS_FOR_SANDBOX,
    "bash-013": "tools/test_bash.py",
    "bash-015": "tools/test_bash.py",
    "bash-017": WAITS_FOR_COMPRESSION,
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
    "perm-002": WAITS_FOR_RULES,
    "reg-001": "contract/test_registry_cases.py",
    "reg-003": "contract/test_registry_cases.py",
    "conc-001": "contract/test_concurrent_calls.py",
}
OF_THE_NETWORK = {
    "WF-01": "tools/test_web_fetch.py",
    "WF-03": "tools/test_web_fetch.py",
    "WF-04": "tools/test_web_fetch.py",
    "WF-05": "tools/test_web_fetch.py",
    "WF-07": "tools/test_web_fetch.py",
    "WF-08": "tools/test_web_fetch.py",
    "WF-09": "tools/test_web_fetch.py",
    "WF-11": "tools/test_web_fetch.py",
    "WF-12": "tools/test_web_fetch.py",
    "WF-14": "tools/test_web_fetch.py",
    "WF-16": "tools/test_web_fetch.py",
    "WF-19": "tools/test_web_fetch.py",
    "WF-20": "tools/test_web_fetch.py",
    "WF-21": "tools/test_web_fetch.py",
    "WF-22": "tools/test_web_fetch.py",
    "WF-23": "tools/test_web_fetch.py",
    "WF-24": "tools/test_web_fetch.py",
    "WF-27": "tools/test_web_fetch.py",
    "WF-32": "tools/test_web_fetch.py",
    "WF-33": "tools/test_web_fetch.py",
    "WF-34": "http_client/test_client.py",
    "WF-36": "http_client/test_client.py",
    "WF-37": "tools/test_web_fetch.py",
    "WF-38": "tools/test_web_fetch.py",
    "WF-39": "tools/test_web_fetch.py",
    "WF-41": "tools/test_web_fetch.py",
    "WF-44": WAITS_FOR_RULES,
    "WF-45": "tools/test_web_fetch.py",
    "WF-47": "http_client/test_client.py",
}
OF_FRAMES_AND_SCHEMAS = {
    "PR-01": "e2e/test_hostile_frames.py",
    "PR-02": "e2e/test_hostile_frames.py",
    "PR-04": "e2e/test_hostile_frames.py",
    "PR-07": "e2e/test_hostile_frames.py",
    "PR-10": "e2e/test_hostile_frames.py",
    "PR-11": "e2e/test_hostile_frames.py",
    "PR-12": "the SDK answers both calls, each once, under the one id; refusing the second comes with hardening",
    "PR-13": "e2e/test_hostile_frames.py",
    "PR-15": "e2e/test_hostile_frames.py",
    "PR-16": "e2e/test_hostile_frames.py",
    "PR-20": "e2e/test_hostile_frames.py",
    "PR-22": "e2e/test_hostile_frames.py",
    "PR-23": "e2e/test_stdout.py",
    "UP-24": "upstreams/test_output_check.py",
    "UP-26": "upstreams/test_output_check.py",
}
CASES = {**OF_TOOLS, **OF_THE_NETWORK, **OF_FRAMES_AND_SCHEMAS}
COVERED = {case: where for case, where in CASES.items() if where.endswith(".py")}


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


def test_the_table_holds_every_case_and_little_waits() -> None:
    assert (len(OF_TOOLS), len(OF_THE_NETWORK)) == (73, 29)
    assert {case for case in CASES if case not in COVERED} == {"bash-012", "bash-017", "perm-002", "WF-44", "PR-12"}
