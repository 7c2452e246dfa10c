"""The official suite's server scenarios: against our fixture, and against goat-mcp in front of it. # R-HTTP-6"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.suite import REVISIONS, Outcome, Suite
from tests.conformance.targets import TARGETS

pytestmark = pytest.mark.e2e
HOW_MANY = {"2025-11-25": 33, "2026-07-28": 40}


def shortcomings(outcomes: list[Outcome]) -> dict[str, tuple[str, ...]]:
    return {outcome.scenario: outcome.failures for outcome in outcomes if not outcome.passed}


@pytest.mark.parametrize("target", ["direct"])
def test_every_server_scenario_of_both_revisions_passes(suite: Suite, target: str, tmp_path: Path) -> None:
    with TARGETS[target](tmp_path) as url:
        found = {revision: suite.against_server(url, revision, tmp_path / revision) for revision in REVISIONS}

    short = {revision: shortcomings(outcomes) for revision, outcomes in found.items()}
    assert {revision: len(outcomes) for revision, outcomes in found.items()} == HOW_MANY
    assert short == {"2025-11-25": {}, "2026-07-28": {}}


def test_a_server_that_is_none_fails_every_scenario(suite: Suite, tmp_path: Path) -> None:
    """The net has no holes: what is counted as passed was there."""
    outcomes = suite.against_server("http://127.0.0.1:1/mcp", "2025-11-25", tmp_path)

    assert [outcome.scenario for outcome in outcomes if outcome.passed] == []
    assert len(outcomes) == HOW_MANY["2025-11-25"]
