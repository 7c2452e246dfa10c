"""The official suite's server scenarios: against our fixture, and against goat-mcp in front of it. # R-HTTP-6"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.high_level import HIGH_LEVEL, lost
from tests.conformance.scenarios import NOT_ACROSS_ERAS
from tests.conformance.suite import REVISIONS, Outcome, Suite
from tests.conformance.targets import HANDSHAKE_ONLY, TARGETS

pytestmark = [pytest.mark.e2e, pytest.mark.matrix]
HOW_MANY = {"2025-11-25": 33, "2026-07-28": 40}


def shortcomings(outcomes: list[Outcome], known: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """What failed, but for what is known to."""
    return {
        outcome.scenario: outcome.failures
        for outcome in outcomes
        if not outcome.passed and outcome.scenario not in known
    }


@pytest.mark.parametrize("target", TARGETS)
def test_the_server_scenarios_of_both_revisions_pass(suite: Suite, target: str, tmp_path: Path) -> None:
    """R-HTTP-6: `http-header-validation`, `http-custom-header-server-validation` and `server-stateless` among them."""
    with TARGETS[target](tmp_path) as url:
        found = {revision: suite.against_server(url, revision, tmp_path / revision) for revision in REVISIONS}

    known = NOT_ACROSS_ERAS if target == HANDSHAKE_ONLY else ()
    short = {revision: shortcomings(outcomes, known) for revision, outcomes in found.items()}
    assert {revision: len(outcomes) for revision, outcomes in found.items()} == HOW_MANY
    assert short == {"2025-11-25": {}, "2026-07-28": {}}


@pytest.mark.full
@pytest.mark.parametrize("target", ["high-level HTTP upstream", "high-level stdio upstream"])
def test_what_a_high_level_server_passes_directly_it_passes_through_us_in_both_eras(
    suite: Suite, target: str, tmp_path: Path
) -> None:
    """ERA-2b: tools that ask by a request work in the handshake only, and do so through us."""

    def outcomes(name: str, folder: Path) -> dict[str, list[Outcome]]:
        folder.mkdir()
        with HIGH_LEVEL[name](folder) as url:
            return {revision: suite.against_server(url, revision, folder / revision) for revision in REVISIONS}

    by_itself, through = outcomes("high-level server", tmp_path / "direct"), outcomes(target, tmp_path / "through")

    both = {revision: {"high-level server": by_itself[revision], target: through[revision]} for revision in REVISIONS}
    assert {revision: lost(columns) for revision, columns in both.items()} == {revision: {} for revision in REVISIONS}
    passed = {outcome.scenario for outcome in through["2025-11-25"] if outcome.passed}
    assert {"tools-call-sampling", "tools-call-elicitation"} <= passed


def test_a_server_that_is_none_fails_every_scenario(suite: Suite, tmp_path: Path) -> None:
    """The net has no holes: what is counted as passed was there."""
    outcomes = suite.against_server("http://127.0.0.1:1/mcp", "2025-11-25", tmp_path)

    assert [outcome.scenario for outcome in outcomes if outcome.passed] == []
    assert len(outcomes) == HOW_MANY["2025-11-25"]
