"""The official conformance suite: where it lives, how it is installed, and one run of its scenarios.

What a run says is read from the files that the suite leaves, not from what it prints.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from goat_mcp.state.file_lock import exclusive

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).parent / "node"
MODULES = FOLDER / "node_modules"
ENTRY = MODULES / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
OLDEST_NODE = 22
REVISIONS = ("2025-11-25", "2026-07-28")
INSTALL_TIMEOUT_S = 400
LIST_TIMEOUT_S = 60
RUN_TIMEOUT_S = 400
SCENARIO_TIMEOUT_MS = 60_000

Side = Literal["server", "client"]
_STAMPED = re.compile(r"-\d{4}-\d\d-\d\dT[\d-]+Z$")
# Of the suite's own making: they say that a message was well-formed, not that a scenario got anywhere.
_OF_ALL_SCENARIOS = frozenset({"wire-schema-valid", "wire-schema-harness-error"})


class NoSuite(Exception):
    """The suite cannot be run here; the text says why."""


@dataclass(frozen=True)
class Outcome:
    """How one scenario ended. A warning, by the suite's rules for what should be, does not fail it."""

    scenario: str
    successes: int = 0
    failures: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.failures

    @property
    def is_left_out(self) -> bool:
        """Whether the suite itself has checked nothing of it."""
        return self.passed and not self.successes and not self.warnings


@dataclass(frozen=True)
class Suite:
    """The installed suite and the Node it runs in."""

    program: str

    @property
    def version(self) -> str:
        return str(json.loads((ENTRY.parents[1] / "package.json").read_text())["version"])

    @property
    def node_version(self) -> str:
        return _node_version(self.program) or ""

    def scenarios(self, side: Side, revision: str) -> list[str]:
        """What the suite has for one side of the protocol at one revision, its extensions aside."""
        said = self._run(["list", f"--{side}", "--spec-version", revision], LIST_TIMEOUT_S).stdout
        return [line.split()[1] for line in said.splitlines() if line.startswith("  - ")]

    def extensions(self, side: Side) -> list[str]:
        """The scenarios of extensions, which belong to no revision."""
        said = self._run(["list", f"--{side}"], LIST_TIMEOUT_S).stdout
        lines = [line for line in said.splitlines() if line.startswith("  - ") and line.endswith("[extension]")]
        return [line.split()[1] for line in lines]

    def against_server(self, url: str, revision: str, folder: Path) -> list[Outcome]:
        """All server scenarios of a revision, one after the other, in the suite's order."""
        names = self.scenarios("server", revision)
        options = ["--suite", "all", "--spec-version", revision, "--timeout", str(SCENARIO_TIMEOUT_MS)]
        return self._outcomes("server", names, ["--url", url, *options], folder)

    def against_extension(self, url: str, scenario: str, folder: Path) -> Outcome:
        """One server scenario of an extension. What the suite itself leaves out there is no failure."""
        options = ["--url", url, "--scenario", scenario, "--timeout", str(SCENARIO_TIMEOUT_MS)]
        (outcome,) = self._outcomes("server", [scenario], options, folder)
        return outcome

    def against_client(
        self, command: str, scenario: str, revision: str, folder: Path, *, is_extension: bool = False
    ) -> Outcome:
        """One client scenario: the suite serves, and runs `command` with the URL of its server.

        As in the suite's own count, a warning fails it, and so does a client that ends badly. An extension belongs to
        no revision, and is run at the one that is given.
        """
        options = ["--scenario", scenario, "--spec-version", revision, "--timeout", str(SCENARIO_TIMEOUT_MS)]
        options += ["--force"] if is_extension else []
        (outcome,) = self._outcomes("client", [scenario], ["--command", command, *options], folder)
        return replace(outcome, failures=(*outcome.failures, *outcome.warnings), warnings=())

    def _outcomes(self, side: Side, names: Iterable[str], options: Sequence[str], folder: Path) -> list[Outcome]:
        try:
            done = self._run([side, *options, "--output-dir", str(folder)], RUN_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return [Outcome(name, 0, (f"the suite was not done after {RUN_TIMEOUT_S} s",)) for name in names]
        found = {
            _STAMPED.sub("", str(file.parent.relative_to(folder))).removeprefix("server-"): json.loads(file.read_text())
            for file in folder.rglob("checks.json")
        }
        of_client = "".join(file.read_text()[-1000:] for file in folder.rglob("stderr.txt"))
        ended = f"the suite ended with {done.returncode}: {_one_line((of_client or done.stdout + done.stderr)[-300:])}"
        outcomes = [_outcome(name, found[name]) if name in found else Outcome(name, 0, (ended,)) for name in names]
        if done.returncode != 0 and all(outcome.passed and not outcome.warnings for outcome in outcomes):
            # It knows something that it did not write down, e.g. that the client ended with an error.
            return [replace(outcome, failures=(ended,)) for outcome in outcomes]
        return outcomes

    def _run(self, arguments: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        command = [self.program, str(ENTRY), *arguments]
        # From here, so that what it runs finds our packages.
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False)


def _outcome(scenario: str, checks: list[Mapping[str, Any]]) -> Outcome:
    successes = [check for check in checks if check["status"] == "SUCCESS" and check["id"] not in _OF_ALL_SCENARIOS]
    return Outcome(scenario, len(successes), _said(checks, "FAILURE"), _said(checks, "WARNING"))


def _said(checks: Iterable[Mapping[str, Any]], status: str) -> tuple[str, ...]:
    """What the checks of that status say, each once."""
    lines = [
        f"{check['id']}: {_one_line(check.get('errorMessage') or check['description'])}"
        for check in checks
        if check["status"] == status
    ]
    return tuple(dict.fromkeys(lines))


def _one_line(message: str) -> str:
    return " ".join(message.split())[:300]


def find_suite() -> Suite:
    """The suite, installed if need be. Raises `NoSuite`."""
    npm = shutil.which("npm")
    stamp = MODULES / ".ready"
    if npm is None and not stamp.exists():
        raise NoSuite("needs npm on PATH to install the conformance suite")
    if npm is not None:
        # Parallel test workers come here at the same time; one of them installs.
        with exclusive(FOLDER / "package.json"):
            if not stamp.exists():
                _install(npm, stamp)
    program = _new_enough_node()
    if program is None:
        raise NoSuite(f"needs Node.js {OLDEST_NODE} or newer, on PATH or from npm; there is none")
    return Suite(program)


def _install(npm: str, stamp: Path) -> None:
    command = [npm, "install", "--silent", "--no-progress"]
    try:
        done = subprocess.run(
            command, cwd=FOLDER, capture_output=True, text=True, timeout=INSTALL_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoSuite(f"npm install was not done after {INSTALL_TIMEOUT_S} s") from None
    if done.returncode != 0 or not ENTRY.exists():
        raise NoSuite(f"npm install failed in {FOLDER}: {(done.stdout + done.stderr)[-500:]}")
    stamp.touch()


def _new_enough_node() -> str | None:
    """The Node of this machine where it is new enough, else the one that came with the suite."""
    for program in (shutil.which("node"), str(MODULES / ".bin" / "node")):
        version = _node_version(program) if program is not None else None
        if program is not None and version is not None and int(version.split(".")[0]) >= OLDEST_NODE:
            return program
    return None


def _node_version(program: str) -> str | None:
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=LIST_TIMEOUT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip().removeprefix("v")
