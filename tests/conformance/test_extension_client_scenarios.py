"""The official suite's extension scenarios of the client side: logins without a person. # AUT-1"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.extension_logins import EXTENSION_LOGINS, NOT_IN_THE_SDK
from tests.conformance.suite import REVISIONS, Suite
from tests.conformance.test_client_scenarios import DRIVER

pytestmark = [pytest.mark.e2e, pytest.mark.matrix]


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("scenario", [name for name in EXTENSION_LOGINS if name not in NOT_IN_THE_SDK])
def test_a_client_scenario_of_an_extension_passes(suite: Suite, revision: str, scenario: str, tmp_path: Path) -> None:
    outcome = suite.against_client(DRIVER, scenario, revision, tmp_path, is_extension=True)

    assert outcome.failures == ()
    assert outcome.successes > 0


@pytest.mark.parametrize("scenario", NOT_IN_THE_SDK)
def test_what_is_known_to_fail_fails_for_want_of_proofs_alone(suite: Suite, scenario: str, tmp_path: Path) -> None:
    outcome = suite.against_client(DRIVER, scenario, REVISIONS[-1], tmp_path, is_extension=True)

    assert outcome.failures
    assert all(failure.startswith("sep-1932-client-") for failure in outcome.failures)


def test_these_are_all_the_logins_that_the_suite_has(suite: Suite) -> None:
    listed = [name for name in suite.extensions("client") if name.startswith("auth/")]

    assert tuple(listed) == EXTENSION_LOGINS
