"""The suite's client scenarios of extensions, which belong to no revision: goat-mcp in front of the suite's server."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

from tests.conformance.extension_logins import EXTENSION_LOGINS, NOT_IN_THE_SDK
from tests.conformance.extensions import ExtensionResults
from tests.conformance.page import Table, section
from tests.conformance.skill_targets import SKILL_CLIENT_SCENARIOS
from tests.conformance.suite import REVISIONS, Outcome, Suite

EXTENSION_CLIENTS: Mapping[str, Sequence[str]] = {
    "Logins without a person": EXTENSION_LOGINS,
    "Skills": SKILL_CLIENT_SCENARIOS,
}
"""By title, in the suite's order."""


def run_extension_clients(suite: Suite, driver: str, pool: Executor, folder: Path) -> Callable[[], ExtensionResults]:
    """Begin all of them, at each revision. What is returned waits for the end."""

    def one(scenario: str, revision: str) -> Outcome:
        place = folder / "extension-clients" / revision / scenario.replace("/", "-")
        return suite.against_client(driver, scenario, revision, place, is_extension=True)

    jobs = {
        title: {
            f"goat-mcp, {revision}": [pool.submit(one, scenario, revision) for scenario in scenarios]
            for revision in REVISIONS
        }
        for title, scenarios in EXTENSION_CLIENTS.items()
    }

    def results() -> ExtensionResults:
        parts = ["### Extensions: client scenarios"]
        short: set[str] = set()
        for title, columns in jobs.items():
            found: Table = {column: [job.result() for job in runs] for column, runs in columns.items()}
            parts.append(section(title, found, level=4))
            failed = {outcome.scenario for outcomes in found.values() for outcome in outcomes if not outcome.passed}
            if known := [f"- {scenario}: {why}." for scenario, why in NOT_IN_THE_SDK.items() if scenario in failed]:
                parts.append("\n".join(["Why they fail:", "", *known]))
            short |= failed
        return ExtensionResults("\n\n".join(parts), short <= set(NOT_IN_THE_SDK))

    return results
