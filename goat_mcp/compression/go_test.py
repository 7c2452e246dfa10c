"""`go test`: what failed, whole; what passed, counted. Of stack traces your own places stay, those in Go itself go."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.compression.failures import names_a_failure
from goat_mcp.compression.pressed import Pressed
from goat_mcp.shell.names import Words

_STEP = re.compile(r" *=== (?:RUN|PAUSE|CONT|NAME) +\S.*")
_TEST = re.compile(r" *--- (?P<how>PASS|FAIL|SKIP): \S.*")
_PACKAGE = re.compile(r"(?P<how>ok|FAIL) {0,2}\t\S.*")
_WITH_COVERAGE = re.compile(r"\tcoverage: [1-9]")
_NO_TESTS = re.compile(r"\? +\t\S+\t\[no test files\]|\t\S+\t\tcoverage: 0\.0% of statements")
_PLACE = re.compile(r"(?P<place>\t\S[^\t]*:\d+)(?: \+0x[0-9a-f]+)?")
_IN_GO_ITSELF = re.compile(r"\t\S*/go[^/\s]*/src/(?:testing|runtime|reflect)/\S+:\d+")
_CALL = re.compile(r"(?P<function>[\w./*()\[\]-]+)\([0-9a-fx{}., ?]+\)")
_CREATED = re.compile(r"created by \S+(?: in goroutine \d+)?")


def press_go_test(words: Words, lines: Sequence[str]) -> Pressed | None:
    if words[1:2] != ("test",):
        return None
    tests = {"PASS": 0, "FAIL": 0, "SKIP": 0}
    packages = {"ok": 0, "FAIL": 0}
    kept: list[str] = []
    for line in lines:
        if test := _TEST.fullmatch(line):
            tests[test["how"]] += 1
            if test["how"] != "PASS":
                kept.append(line)
        elif package := _PACKAGE.fullmatch(line):
            packages[package["how"]] += 1
            if package["how"] != "ok" or _WITH_COVERAGE.search(line):
                kept.append(line)
        elif not (_STEP.fullmatch(line) or _NO_TESTS.fullmatch(line) or line in ("", "PASS")):
            _keep(kept, line)
    if not (sum(tests.values()) or sum(packages.values())):
        return None
    return Pressed((*kept, _summary(tests, packages)), len(lines))


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


def _summary(tests: dict[str, int], packages: dict[str, int]) -> str:
    """Ends with `N passed, M failed`. Without -v only packages say that they passed."""
    if tests["PASS"] or not packages["ok"]:
        skipped = f", {tests['SKIP']} skipped" if tests["SKIP"] else ""
        return f"{sum(tests.values())} tests{skipped}: {tests['PASS']} passed, {tests['FAIL']} failed"
    failed = f" ({tests['FAIL']} tests failed)" if tests["FAIL"] else ""
    return f"{sum(packages.values())} packages{failed}: {packages['ok']} passed, {packages['FAIL']} failed"
