"""The suite's server scenarios of extensions, which belong to no revision: all of them, and their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from tests.conformance.page import section
from tests.conformance.skill_targets import SKILL_SCENARIOS, SKILL_TARGETS
from tests.conformance.suite import Outcome, Suite
from tests.conformance.task_targets import TASK_SCENARIOS, TASK_TARGETS


@dataclass(frozen=True)
class Extension:
    """`scenarios` in the suite's order; each target is one process, or two."""

    title: str
    scenarios: Sequence[str]
    targets: Mapping[str, Callable[[Path], AbstractContextManager[str]]]

    def run(self, suite: Suite, target: str, folder: Path) -> list[Outcome]:
        folder.mkdir(parents=True)
        with self.targets[target](folder) as url:
            return [suite.against_extension(url, scenario, folder / scenario) for scenario in self.scenarios]


EXTENSIONS = (
    Extension("Tasks (`io.modelcontextprotocol/tasks`)", TASK_SCENARIOS, TASK_TARGETS),
    Extension("Skills (`io.modelcontextprotocol/skills`)", SKILL_SCENARIOS, SKILL_TARGETS),
)


@dataclass(frozen=True)
class ExtensionResults:
    """`text` is for the page; empty if nothing was run."""

    text: str = ""
    all_passed: bool = True


def run_extensions(suite: Suite, pool: Executor, folder: Path) -> Callable[[], ExtensionResults]:
    """Begin all of them. What is returned waits for the end."""
    jobs = {
        one.title: {
            target: pool.submit(one.run, suite, target, folder / one.scenarios[0] / target.replace(" ", "-"))
            for target in one.targets
        }
        for one in EXTENSIONS
    }

    def results() -> ExtensionResults:
        parts = ["### Extensions: server scenarios"]
        outcomes: list[Outcome] = []
        for title, targets in jobs.items():
            columns = {target: job.result() for target, job in targets.items()}
            parts.append(section(title, columns, level=4))
            outcomes += [outcome for found in columns.values() for outcome in found]
        return ExtensionResults("\n\n".join(parts), all(outcome.passed for outcome in outcomes))

    return results
