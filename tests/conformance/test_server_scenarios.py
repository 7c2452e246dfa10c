"""The official suite's server scenarios: against our fixture, and against goat-mcp in front of it. # R-HTTP-6"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.suite import REVISIONS, Outcome, Suite
from tests.conformance.targets import TARGETS

pytestmark = pytest.mark.e2e
NOT_ACROSS_ERAS = (
    # The suite looks for the upstream's own key of a question; one that asks by a request has none.
    "input-required-result-basic-elicitation",
    # Requests come one after the other, not in one answer.
    "input-required-result-multiple-input-requests",
    # It waits 0.6 s for the first frame, and the first call of a client with other abilities starts a process.
    "server-stateless",
)
"""What an upstream that knows only the older era cannot do for newer clients, whoever stands between."""
HOW_MANY = {"2025-11-25": 33, "2026-07-28": 40}


def shortcomings(outcomes: list[Outcome], known: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """What failed, but for scenarios whose names begin as is known."""
    return {
        outcome.scenario: outcome.failures
        for outcome in outcomes
        if not outcome.passed and not outcome.scenario.startswith(known)
    }


@pytest.mark.parametrize("target", TARGETS)
def test_the_server_scenarios_of_both_revisions_pass(suite: Suite, target: str, tmp_path: Path) -> None:
    """R-HTTP-6: `http-header-validation`, `http-custom-header-server-validation` and `server-stateless` among them."""
    with TARGETS[target](tmp_path) as url:
        found = {revision: suite.against_server(url, revision, tmp_path / revision) for revision in REVISIONS}

    known = NOT_ACROSS_ERAS if target == "handshake-only upstream" else ()
    short = {revision: shortcomings(outcomes, known) for revision, outcomes in found.items()}
    assert {revision: len(outcomes) for revision, outcomes in found.items()} == HOW_MANY
    assert short == {"2025-11-25": {}, "2026-07-28": {}}


def test_a_server_that_is_none_fails_every_scenario(suite: Suite, tmp_path: Path) -> None:
    """The net has no holes: what is counted as passed was there."""
    outcomes = suite.against_server("http://127.0.0.1:1/mcp", "2025-11-25", tmp_path)

    assert [outcome.scenario for outcome in outcomes if outcome.passed] == []
    assert len(outcomes) == HOW_MANY["2025-11-25"]
