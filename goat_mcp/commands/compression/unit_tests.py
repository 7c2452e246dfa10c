"""Test runs: `pytest`, `go test`, `cargo test`, `jest` and `vitest`. Failures and summaries stay whole."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from goat_mcp.commands.compression.compressor import Compressed, names_a_failure
from goat_mcp.commands.shell.words import Words

_PERCENT = r"(?: +\[ *\d+%\])?"
_DOTS = re.compile(rf"(?:(?P<file>[^\s:]+\.[A-Za-z]+) )?(?P<marks>[.FEsxXpPRu,]+){_PERCENT}")
_PYTEST_PASSED = re.compile(
    rf"(?P<file>[^\s:]+\.[A-Za-z]+)::.+ PASSED{_PERCENT}"
    r"|\[gw\d+\](?: \[ *\d+%\])? PASSED (?P<file_too>[^\s:]+\.[A-Za-z]+)::.+"
)
_STARTED = re.compile(r"[^\s:]+\.[A-Za-z]+::.* ")
"""xdist prints this when it hands a test to a worker; the result follows."""
_PYTEST_HEAD = re.compile(
    r"platform .+ -- .*|cachedir: .+|rootdir: .+|testpaths: .+|plugins: .+|asyncio: mode=.+|"
    r"hypothesis profile .+|collect(?:ed|ing) .*|using --random.+|Using --random.+|created: \d+.+|\d+ workers .+|"
    r"-- Docs: .+|scheduling tests via .+|bringing up nodes\.\.\."
)
_PYTEST_RULE = re.compile(r"(?P<sign>[=_-])(?P=sign)* (?P<title>.+?) (?P=sign)+|_(?: _)+ ?")
_PYTEST_SUMMARY = re.compile(r"(?:=+ )?(?:no tests ran|\d+ \w+)(?:, \d+ \w+)* in [\d.]+s(?: \([\d:]+\))?(?: =+)?")
_PASSED_IN_ALL = re.compile(r"\b(?P<count>\d+) passed\b")
_PYTEST_CODE = re.compile(r"(?: {4}.*|)")
_PYTEST_NOT_CODE = ("Captured ", "warnings summary", "short test summary")


def compress_pytest(words: Words, lines: Sequence[str]) -> Compressed | None:
    """Failures and summaries whole; files by name, with the number of tests that passed.

    With `-v` each test that did not pass keeps its line, without `-v` its letter behind that number. Of a failing
    function's source only the marked line stays: the rest is in the file, at the named line.
    """
    end = next((at for at, line in enumerate(lines, 1) if _PYTEST_SUMMARY.fullmatch(line)), 0)
    if not end:
        return None
    report = _PytestReport()
    for line in lines[:end]:
        report.read(line)
    return Compressed(tuple(report.shown()), end)


def _is_pytest_head(line: str) -> bool:
    return _PYTEST_HEAD.fullmatch(line) is not None and not names_a_failure(line)


class _PytestReport:
    """The lines of one pytest run, read one by one."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._files: dict[str, str] = {}
        self._passed_in_all = 0
        self._file = ""
        self._in_progress = True
        self._has_code = False
        self._code: list[str] = []

    def read(self, line: str) -> None:
        if _PYTEST_SUMMARY.fullmatch(line):
            in_all = _PASSED_IN_ALL.search(line)
            self._passed_in_all = int(in_all["count"]) if in_all else 0
            self._keep(line.strip("= "))
        elif rule := _PYTEST_RULE.fullmatch(line):
            self._read_rule(rule["sign"], rule["title"])
        elif self._in_progress:
            self._read_progress(line)
        elif self._has_code and _PYTEST_CODE.fullmatch(line):
            self._code.append(line)
        elif line.startswith(">") and self._has_code:
            # The marked line stands for the function it is in.
            self._kept.extend(code for code in self._code if names_a_failure(code))
            self._code.clear()
            self._keep(line)
        elif line and not _is_pytest_head(line):
            self._keep(line)

    def shown(self) -> list[str]:
        self._keep_code()
        if not self._files:
            return self._kept
        # Output of tests may stand between a file's name and its marks.
        is_certain = sum(marks.count(".") for marks in self._files.values()) == self._passed_in_all
        if not is_certain:
            return [f"ran {', '.join(self._files)}", *self._kept]
        files = (f"{file} ({_counted_marks(marks)})" for file, marks in self._files.items())
        return [f"passed: {', '.join(files)}", *self._kept]

    def _keep(self, line: str) -> None:
        self._keep_code()
        self._kept.append(line)

    def _keep_code(self) -> None:
        self._kept.extend(line for line in self._code if line)
        self._code.clear()

    def _read_rule(self, sign: str | None, title: str | None) -> None:
        if sign is None or title is None:
            self._keep("_ _")
            return
        if sign == "=":
            self._in_progress = title.endswith("test session starts")
        self._has_code = not title.startswith(_PYTEST_NOT_CODE) and not self._in_progress
        if title != "test session starts":
            self._keep(f"{sign * 2} {title}")

    def _read_progress(self, line: str) -> None:
        if dots := _DOTS.fullmatch(line):
            self._file = dots["file"] or self._file
            self._mark(self._file, dots["marks"])
        elif passed := _PYTEST_PASSED.fullmatch(line):
            self._mark(passed["file"] or passed["file_too"], ".")
            if names_a_failure(line):
                self._keep(line)
        elif line and not _is_pytest_head(line) and (not _STARTED.fullmatch(line) or names_a_failure(line)):
            self._keep(line)

    def _mark(self, file: str, marks: str) -> None:
        if file:
            self._files[file] = self._files.get(file, "") + marks


def _counted_marks(marks: str) -> str:
    others = marks.replace(".", "")
    return f"{marks.count('.')} {others}" if others else f"{len(marks)}"


_GO_STEP = re.compile(r" *=== (?P<how>RUN|PAUSE|CONT|NAME) +(?P<test>\S.*)")
_GO_TEST = re.compile(r" *--- (?P<how>PASS|FAIL|SKIP): (?P<test>\S.*?)(?: \([\d.]+s\))?")
_GO_PACKAGE = re.compile(r"(?P<how>ok|FAIL) {0,2}\t\S.*")
_GO_COVERAGE = re.compile(r"\tcoverage: [1-9]")
_GO_NO_TESTS = re.compile(r"\? +\t\S+\t\[no test files\]|\t\S+\t\tcoverage: 0\.0% of statements")
_GO_PLACE = re.compile(r"(?P<place>\t\S[^\t]*:\d+)(?: \+0x[0-9a-f]+)?")
_IN_GO_ITSELF = re.compile(r"\t\S*/go[^/\s]*/src/(?:testing|runtime|reflect)/\S+:\d+")
_GO_CALL = re.compile(r"(?P<function>[\w./*()\[\]-]+)\([0-9a-fx{}., ?]+\)")
_GO_CREATED = re.compile(r"created by \S+(?: in goroutine \d+)?")


def compress_go_test(words: Words, lines: Sequence[str]) -> Compressed | None:
    """Failures whole, passed tests counted. Of stack traces the frames in Go itself go.

    A line that a test prints stands below the `=== RUN` of that test. Tests may print whatever Go prints, and without
    a line end. So they are counted only if each has begun and ended once; else the result lists the lines left out.
    """
    if words[1:2] != ("test",):
        return None
    kept: list[str] = []
    count = _GoCount()
    step = ""
    for line in lines:
        if began := _GO_STEP.fullmatch(line):
            count.step(began["how"], began["test"])
            step = line
        elif test := _GO_TEST.fullmatch(line):
            count.end(test["how"], test["test"])
            step = ""
            if test["how"] != "PASS" or not count.has_begun(test["test"]):
                kept.append(line)
            else:
                count.left_out["--- PASS"] += 1
        elif package := _GO_PACKAGE.fullmatch(line):
            count.end_of_package()
            step = ""
            if package["how"] != "ok" or _GO_COVERAGE.search(line):
                kept.append(line)
            else:
                count.left_out["ok"] += 1
        elif not (_GO_NO_TESTS.fullmatch(line) or line in ("", "PASS")):
            kept.extend([step] if step else [])
            step = ""
            _keep_go_line(kept, line)
    return Compressed((*kept, *count.summary()), len(lines)) if count.found_any else None


def _keep_go_line(kept: list[str], line: str) -> None:
    """Add a line; a frame of a stack trace is two lines, the call and its place."""
    if place := _GO_PLACE.fullmatch(line):
        before = kept[-1] if kept else ""
        is_frame = before.endswith((")", "(...)")) or _GO_CREATED.fullmatch(before) is not None
        if is_frame and _IN_GO_ITSELF.fullmatch(place["place"]):
            if not names_a_failure(before):
                del kept[-1]
            return
        kept.append(place["place"])
    elif (call := _GO_CALL.fullmatch(line)) and not names_a_failure(line):
        kept.append(f"{call['function']}(...)")
    else:
        kept.append(line)


class _GoCount:
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


_CARGO_PASSED = re.compile(r"test .+ \.\.\. ok(?: <[\d.]+s>)?")
_CARGO_NOISE = re.compile(
    r" *(?:Compiling|Downloaded|Downloading|Updating|Locking|Adding|Blocking|Finished|Fresh|Checking) .+|"
    r"running \d+ tests?|failures:|    stack backtrace:|"
    r"note: Some details are omitted, run with `RUST_BACKTRACE=.+|note: run with `RUST_BACKTRACE=.+"
)
_CARGO_RUNNING = re.compile(r" +(?P<what>Running (?:unittests )?\S+|Doc-tests \S+)(?: \(.+\))?")
_CARGO_SUMMARY = re.compile(r"test result: (?:ok|FAILED)\. .+")
_CARGO_FRAME = re.compile(r" +\d+: .+")
_IN_RUST_ITSELF = re.compile(r" +at /rustc/[0-9a-f]{40}/.+")
_CARGO_NOTHING_RAN = re.compile(r"test result: ok\. 0 passed; 0 failed; 0 ignored; .+")


def compress_cargo_test(words: Words, lines: Sequence[str]) -> Compressed | None:
    """Failures and summaries whole; the summaries count the passed tests. Of stack traces the frames in Rust go."""
    verb = next((word for word in words[1:] if not word.startswith(("-", "+"))), "")
    if verb not in ("test", "t") or not any(_CARGO_SUMMARY.fullmatch(line) for line in lines):
        return None
    kept: list[str] = []
    for line in lines:
        if _IN_RUST_ITSELF.fullmatch(line):
            if kept and _CARGO_FRAME.fullmatch(kept[-1]):
                del kept[-1]
        elif running := _CARGO_RUNNING.fullmatch(line):
            kept.append(running["what"])
        elif not (
            _CARGO_PASSED.fullmatch(line)
            or _CARGO_NOISE.fullmatch(line)
            or line == ""
            or _CARGO_NOTHING_RAN.fullmatch(line)
        ):
            kept.append(line)
    return Compressed(tuple(kept), len(lines))


_JEST_PASSED_FILE = re.compile(r" *(?:PASS|[✓√]) +(?:\|\S+\| +)?(?P<file>[^\s(]+\.[cm]?[jt]sx?)(?: .*)?")
_JEST_LINE = re.compile(r"\u23af{3,}(?: (?P<title>.+?) )?\u23af*|\u23af+\[\d+/\d+\]\u23af*")
_JEST_PASSED_TEST = re.compile(r" +[✓√] .+")
_JEST_STEP = re.compile(r"> \S.*|yarn run v.+|\$ .+|Ran all test suites.*|Done in .+|Snapshots: +0 total")
_JEST_SUMMARY = re.compile(r" *(?:Tests:?|Test Suites:|Test Files) +\S.*")


def compress_jest(words: Words, lines: Sequence[str]) -> Compressed | None:
    """Of jest and vitest: failures and the summary whole; files that passed by name."""
    if not any(_JEST_SUMMARY.fullmatch(line) for line in lines):
        return None
    ran: dict[str, None] = {}
    kept: list[str] = []
    for line in lines:
        if names_a_failure(line):
            kept.append(line)
        elif file := _JEST_PASSED_FILE.fullmatch(line):
            ran[file["file"]] = None
        elif rule := _JEST_LINE.fullmatch(line):
            kept.extend([rule["title"]] if rule["title"] else [])
        elif line.strip() and not _JEST_PASSED_TEST.fullmatch(line) and not _JEST_STEP.fullmatch(line):
            kept.append(line)
    return Compressed((f"ran {', '.join(ran)}", *kept) if ran else tuple(kept), len(lines))
