"""The official suite's scenarios for tasks: against a server that has them, and goat-mcp in front of one. # ERA-7"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.suite import Suite
from tests.conformance.task_targets import NOT_RUN_BY_SUITE, TASK_SCENARIOS, TASK_TARGETS

pytestmark = [pytest.mark.e2e, pytest.mark.matrix]


@pytest.mark.parametrize("target", TASK_TARGETS)
def test_the_scenarios_for_tasks_pass(suite: Suite, target: str, tmp_path: Path) -> None:
    with TASK_TARGETS[target](tmp_path) as url:
        outcomes = [suite.against_extension(url, scenario, tmp_path / scenario) for scenario in TASK_SCENARIOS]

    short = {outcome.scenario: outcome.failures for outcome in outcomes if not outcome.passed}
    unchecked = tuple(outcome.scenario for outcome in outcomes if not outcome.successes)
    assert short == {}
    assert unchecked == NOT_RUN_BY_SUITE
