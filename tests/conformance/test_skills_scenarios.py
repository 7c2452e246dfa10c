"""The official suite's scenarios for skills (SEP-2640): against a server that has them, goat-mcp in front of one, and
goat-mcp with skills of the user's own. # ERA-7"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.skill_targets import SKILL_CLIENT_SCENARIOS, SKILL_SCENARIOS, SKILL_TARGETS
from tests.conformance.suite import REVISIONS, Suite
from tests.conformance.test_client_scenarios import DRIVER

pytestmark = [pytest.mark.e2e, pytest.mark.matrix]


@pytest.mark.parametrize("target", SKILL_TARGETS)
def test_the_scenarios_for_skills_pass_without_a_warning(suite: Suite, target: str, tmp_path: Path) -> None:
    with SKILL_TARGETS[target](tmp_path) as url:
        outcomes = [suite.against_extension(url, scenario, tmp_path / scenario) for scenario in SKILL_SCENARIOS]

    short = {outcome.scenario: (*outcome.failures, *outcome.warnings) for outcome in outcomes if outcome.failures}
    assert short == {}
    assert [outcome.warnings for outcome in outcomes] == [(), (), ()]
    assert [outcome.scenario for outcome in outcomes if not outcome.successes] == []


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("scenario", SKILL_CLIENT_SCENARIOS)
def test_a_client_scenario_for_skills_passes(suite: Suite, scenario: str, revision: str, tmp_path: Path) -> None:
    outcome = suite.against_client(DRIVER, scenario, revision, tmp_path, is_extension=True)

    assert outcome.failures == ()
    assert outcome.successes > 0


def test_these_are_all_the_scenarios_for_skills_that_the_suite_has(suite: Suite) -> None:
    listed = {side: [name for name in suite.extensions(side) if "2640" in name] for side in ("server", "client")}

    assert {side: sorted(names) for side, names in listed.items()} == {
        "server": sorted(SKILL_SCENARIOS),
        "client": sorted(SKILL_CLIENT_SCENARIOS),
    }
