"""`make conformance`: the official suite against our fixture, directly and through goat-mcp. Prints and records it.

`--only COLUMN` and `--revision REVISION` run a part, which is printed and not recorded.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.conformance.page import remarks, table, tally, with_results
from tests.conformance.suite import REVISIONS, NoSuite, Outcome, Suite, find_suite
from tests.conformance.targets import TARGETS
from tests.e2e.goat import REPOSITORY

PAGE = REPOSITORY / "docs" / "conformance.md"
AT_A_TIME = 2


def server_side(suite: Suite, target: str, revisions: tuple[str, ...], folder: Path) -> dict[str, list[Outcome]]:
    """All server scenarios against one target: one process, the revisions one after the other."""
    folder.mkdir()
    with TARGETS[target](folder) as url:
        return {revision: suite.against_server(url, revision, folder / revision) for revision in revisions}


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--only", choices=TARGETS, action="append")
    options.add_argument("--revision", choices=REVISIONS, action="append")
    options.add_argument("--keep", type=Path, help="a new folder that keeps what every part left behind")
    chosen = options.parse_args()
    try:
        suite = find_suite()
    except NoSuite as why:
        print(f"conformance: {why}", file=sys.stderr)
        return 2
    targets, revisions = tuple(chosen.only or TARGETS), tuple(chosen.revision or REVISIONS)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(AT_A_TIME) as pool:
        folder = chosen.keep or Path(scratch)
        folder.mkdir(exist_ok=True)
        jobs = {
            target: pool.submit(server_side, suite, target, revisions, folder / target.replace(" ", "-"))
            for target in targets
        }
        found = {target: job.result() for target, job in jobs.items()}
    by_revision = {revision: {target: found[target][revision] for target in targets} for revision in revisions}
    results = _results(suite, by_revision)
    print(results)
    if not chosen.only and not chosen.revision:
        PAGE.write_text(with_results(PAGE.read_text(), results))
    everything = [outcome for columns in by_revision.values() for outcomes in columns.values() for outcome in outcomes]
    return 0 if all(outcome.passed for outcome in everything) else 1


def _results(suite: Suite, by_revision: dict[str, dict[str, list[Outcome]]]) -> str:
    today = datetime.now(UTC).date().isoformat()
    parts = [
        f"Run on {today}: `@modelcontextprotocol/conformance` {suite.version}, Node {suite.node_version}, "
        f"Python {sys.version_info.major}.{sys.version_info.minor}, SDK `mcp` {version('mcp')}."
    ]
    for revision, columns in by_revision.items():
        counts = "; ".join(f"{target}: {tally(outcomes)}" for target, outcomes in columns.items())
        parts += [f"### Server scenarios of {revision}", f"{counts}.", table(columns)]
        if said := remarks(columns):
            parts.append(said)
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
