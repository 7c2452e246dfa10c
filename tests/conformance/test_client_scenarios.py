"""The official suite's client scenarios: goat-mcp in front of the suite's server. # R-UP-9, AUT-1"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.conformance.scenarios import CLIENT_SCENARIOS, NOT_YET
from tests.conformance.suite import REVISIONS, Suite

pytestmark = [pytest.mark.e2e, pytest.mark.matrix]
DRIVER = f"{sys.executable} -m tests.conformance.driver"
TESTED = [(revision, name) for revision, names in CLIENT_SCENARIOS.items() for name in names if name not in NOT_YET]


@pytest.mark.parametrize(("revision", "scenario"), TESTED)
def test_a_client_scenario_passes(suite: Suite, revision: str, scenario: str, tmp_path: Path) -> None:
    outcome = suite.against_client(DRIVER, scenario, revision, tmp_path)

    assert outcome.failures == ()
    assert outcome.successes > 0


def test_the_scenarios_are_those_of_the_suite(suite: Suite) -> None:
    listed = {revision: tuple(suite.scenarios("client", revision)) for revision in REVISIONS}

    assert listed == CLIENT_SCENARIOS


def test_a_client_that_does_nothing_fails(suite: Suite, tmp_path: Path) -> None:
    outcome = suite.against_client("true", "tools_call", "2026-07-28", tmp_path)

    assert not outcome.passed
