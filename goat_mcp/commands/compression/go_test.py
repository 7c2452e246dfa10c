"""`go test`: what failed, whole; what passed, counted. Of stack traces your own places stay, those in Go itself go.

What a test prints stands below the `=== RUN` of that test. Tests may print whatever Go prints, and without a line end:
they are counted only where each has begun and ended once; else it is said which lines were left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from goat_mcp.commands.compression.compressed import Compressed
from goat_mcp.commands.compression.failures import names_a_failure
from goat_mcp.commands.shell.names import Words

_STEP = re.compile(r" *=== (?P<how>RUN|PAUSE|CONT|NAME) +(?P<test>\S.*)")
_TEST = re.compile(r" *--- (?P<how>PASS|FAIL|SKIP): (?P<test>\S.*?)(?: \([\d.]+s\))?")
_PACKAGE = re.compile(r"(?P<how>ok|FAIL) {0,2}\t\S.*")
_WITH_COVERAGE = re.compile(r"\tcoverage: [1-9]")
_NO_TESTS = re.compile(r"\? +\t\S+\t\[no test files\]|\t\S+\t\tcoverage: 0\.0% of statements")
_PLACE = re.compile(r"(?P<place>\t\S[^\t]*:\d+)(?: \+0x[0-9a-f]+)?")
_IN_GO_ITSELF = re.compile(r"\t\S*/go[^/\s]*/src/(?:testing|runtime|reflect)/\S+:\d+")
_CALL = re.compile(r"(?P<function>[\w./*()\[\]-]+)\([0-9a-fx{}., ?]+\)")
_CREATED = re.compile(r"created by \S+(?: in goroutine \d+)?")


def press_go_test(words: Words, lines: Sequence[str]) -> Compressed | None:
    if words[1:2] != ("test",):
        return None
    kept: list[str] = []
    count = _Count()
    step = ""
    for line in lines:
        if began := _STEP.fullmatch(line):
            count.step(began["how"], began["test"])
            step = line
        elif test := _TEST.fullmatch(line):
            count.end(test["how"], test["test"])
            step = ""
            if test["how"] != "PASS" or not count.has_begun(test["test"]):
                kept.append(line)
            else:
                count.left_out["--- PASS"] += 1
        elif package := _PACKAGE.fullmatch(line):
            count.end_of_package()
            step = ""
            if package["how"] != "ok" or _WITH_COVERAGE.search(line):
                kept.append(line)
            else:
                count.left_out["ok"] += 1
        elif not (_NO_TESTS.fullmatch(line) or line in ("", "PASS")):
            kept.extend([step] if step else [])
            step = ""
            _keep(kept, line)
    return Compressed((*kept, *count.summary()), len(lines)) if count.found_any else None


def _keep(kept: list[str], line: str) -> None:
    """Add a line; a frame of a stack trace is two lines, the call and its place."""
    if place := _PLACE.fullmatch(line):
        before = kept[-1] if kept else ""
        is_frame = before.endswith((")", "(...)")) or _CREATED.fullmatch(before) is not None
        if is_frame and _IN_GO_ITSELF.fullmatch(place["place"]):
            if not names_a_failure(before):
                del kept[-1]
            return
        kept.append(place["place"])
    elif (call := _CALL.fullmatch(line)) and not names_a_failure(line):
        kept.append(f"{call['function']}(...)")
    else:
        kept.append(line)


class _Count:
    """How many tests passed and failed, as far as that is certain."""

    def __init__(self) -> None:
        self.left_out: Counter[str] = Counter()
        self.found_any = False
        self._tests: Counter[str] = Counter()
        self._open: set[str] = set()
        self._paused: set[str] = set()
        self._begun: set[str] = set()
        self._is_certain = True

    def step(self, how: str, test: str) -> None:
        if how == "PAUSE":
            self._paused.add(test)
        elif how == "RUN":
            # One that begins while another of no relation runs is printed by that one.
            outer = {name.partition("/")[0] for name in self._open - self._paused}
            if test in self._open or not outer <= {test.partition("/")[0]}:
                self._is_certain = False
            self._open.add(test)
            self._begun.add(test)

    def end(self, how: str, test: str) -> None:
        self.found_any = True
        self._tests[how] += 1
        if test not in self._open:
            self._is_certain = False
        self._open.discard(test)
        self._paused.discard(test)

    def has_begun(self, test: str) -> bool:
        return test in self._begun

    def end_of_package(self) -> None:
        self.found_any = True
        if self._open:
            self._is_certain = False
        self._open.clear()
        self._paused.clear()
        self._begun.clear()

    def summary(self) -> list[str]:
        """`N passed, M failed` where each test is known (-v), else the lines that are not shown."""
        tests = self._tests
        if self._is_certain and tests and not self._open:
            skipped = f", {tests['SKIP']} skipped" if tests["SKIP"] else ""
            return [f"{tests.total()} tests{skipped}: {tests['PASS']} passed, {tests['FAIL']} failed"]
        left_out = ", ".join(f'{count} "{what}"' for what, count in self.left_out.items())
        return [f"lines not shown: {left_out}"] if left_out else []
