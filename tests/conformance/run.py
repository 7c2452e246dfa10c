"""`make conformance`: the official suite against our fixture, directly and through goat-mcp, and against goat-mcp as a
client. Prints and records it.

`--only PART` and `--revision REVISION` run less, which is printed and not recorded.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.conformance.extension_clients import run_extension_clients
from tests.conformance.extensions import ExtensionResults, run_extensions
from tests.conformance.high_level import HIGH_LEVEL, lost
from tests.conformance.page import Table, section, with_results
from tests.conformance.scenarios import NOT_ACROSS_ERAS
from tests.conformance.suite import REVISIONS, NoSuite, Outcome, Suite, find_suite
from tests.conformance.targets import HANDSHAKE_ONLY, TARGETS
from tests.e2e.goat import REPOSITORY

PAGE = REPOSITORY / "docs" / "conformance.md"
AT_A_TIME = 2
ALL_TARGETS = {**TARGETS, **HIGH_LEVEL}
CLIENT, EXTENSIONS = "client", "extensions"
DRIVER = f"{sys.executable} -m tests.conformance.driver"


def server_side(suite: Suite, target: str, revisions: tuple[str, ...], folder: Path) -> dict[str, list[Outcome]]:
    """All server scenarios against one target: one process, the revisions one after the other."""
    folder.mkdir()
    with ALL_TARGETS[target](folder) as url:
        return {revision: suite.against_server(url, revision, folder / revision) for revision in revisions}


def client_side(suite: Suite, scenario: str, revision: str, folder: Path) -> Outcome:
    """One client scenario: goat-mcp in front of the suite's server."""
    return suite.against_client(DRIVER, scenario, revision, folder / revision / scenario.replace("/", "-"))


def main() -> int:
    options = argparse.ArgumentParser()
    options.add_argument("--only", choices=[*ALL_TARGETS, CLIENT, EXTENSIONS], action="append")
    options.add_argument("--revision", choices=REVISIONS, action="append")
    options.add_argument("--keep", type=Path, help="a new folder that keeps what every part left behind")
    chosen = options.parse_args()
    try:
        suite = find_suite()
    except NoSuite as why:
        print(f"conformance: {why}", file=sys.stderr)
        return 2
    parts, revisions = tuple(chosen.only or (*ALL_TARGETS, CLIENT, EXTENSIONS)), tuple(chosen.revision or REVISIONS)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(AT_A_TIME) as pool:
        folder = chosen.keep or Path(scratch)
        folder.mkdir(exist_ok=True)
        servers = {
            target: pool.submit(server_side, suite, target, revisions, folder / target.replace(" ", "-"))
            for target in parts
            if target in ALL_TARGETS
        }
        extensions = run_extensions(suite, pool, folder) if EXTENSIONS in parts else ExtensionResults
        clients = {
            revision: [
                pool.submit(client_side, suite, scenario, revision, folder / CLIENT)
                for scenario in (suite.scenarios("client", revision) if CLIENT in parts else ())
            ]
            for revision in revisions
        }
        extension_clients = run_extension_clients(suite, DRIVER, pool, folder) if CLIENT in parts else ExtensionResults
        of_servers, of_high_level = (
            {
                revision: {target: job.result()[revision] for target, job in servers.items() if target in targets}
                for revision in revisions
            }
            for targets in (TARGETS, HIGH_LEVEL)
        )
        of_clients = {
            revision: {"goat-mcp": [job.result() for job in jobs]} if jobs else {} for revision, jobs in clients.items()
        }
        of_extension_clients, of_extensions = extension_clients(), extensions()
    sides = {"Server": of_servers, "High-level server: server": of_high_level, "Client": of_clients}
    parts = (_results(suite, sides), of_extension_clients.text, of_extensions.text)
    results = "\n\n".join(part for part in parts if part)
    print(results)
    if not chosen.only and not chosen.revision:
        PAGE.write_text(with_results(PAGE.read_text(), results))
    unexpected = [
        outcome
        for columns in (*of_servers.values(), *of_clients.values())
        for column, outcomes in columns.items()
        for outcome in outcomes
        if not outcome.passed and not (column == HANDSHAKE_ONLY and outcome.scenario in NOT_ACROSS_ERAS)
    ]
    all_passed = of_extensions.all_passed and of_extension_clients.all_passed
    return 1 if unexpected or any(lost(columns) for columns in of_high_level.values()) or not all_passed else 0


def _results(suite: Suite, sides: Mapping[str, Mapping[str, Table]]) -> str:
    today = datetime.now(UTC).date().isoformat()
    parts = [
        f"Run on {today}: `@modelcontextprotocol/conformance` {suite.version}, Node {suite.node_version}, "
        f"Python {sys.version_info.major}.{sys.version_info.minor}, SDK `mcp` {version('mcp')}."
    ]
    for side, by_revision in sides.items():
        for revision, columns in by_revision.items():
            if columns:
                parts.append(section(f"{side} scenarios of {revision}", columns))
    return "\n\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
