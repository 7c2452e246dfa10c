"""`pytest`: failures and what pytest sums up, whole; files by name, with the number of tests that passed.

With `-v` each test that did not pass keeps its line, without it its letter behind that number.
Of a failing function's source the marked line stays: the rest is in the file, at the line that is named.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.compression.compressed import Compressed
from goat_mcp.commands.compression.failures import names_a_failure
from goat_mcp.commands.shell.names import Words

_PERCENT = r"(?: +\[ *\d+%\])?"
_DOTS = re.compile(rf"(?:(?P<file>[^\s:]+\.[A-Za-z]+) )?(?P<marks>[.FEsxXpPRu,]+){_PERCENT}")
_PASSED = re.compile(
    rf"(?P<file>[^\s:]+\.[A-Za-z]+)::.+ PASSED{_PERCENT}"
    r"|\[gw\d+\](?: \[ *\d+%\])? PASSED (?P<file_too>[^\s:]+\.[A-Za-z]+)::.+"
)
_STARTED = re.compile(r"[^\s:]+\.[A-Za-z]+::.* ")
"""What xdist prints when it hands a test to a worker; how the test ended follows."""
_HEAD = re.compile(
    r"platform .+ -- .*|cachedir: .+|rootdir: .+|testpaths: .+|plugins: .+|asyncio: mode=.+|"
    r"hypothesis profile .+|collect(?:ed|ing) .*|using --random.+|Using --random.+|created: \d+.+|\d+ workers .+|"
    r"-- Docs: .+|scheduling tests via .+|bringing up nodes\.\.\."
)
_RULE = re.compile(r"(?P<sign>[=_-])(?P=sign)* (?P<title>.+?) (?P=sign)+|_(?: _)+ ?")
_SUMMARY = re.compile(r"(?:=+ )?(?:no tests ran|\d+ \w+)(?:, \d+ \w+)* in [\d.]+s(?: \([\d:]+\))?(?: =+)?")
_PASSED_IN_ALL = re.compile(r"\b(?P<count>\d+) passed\b")
_CODE = re.compile(r"(?: {4}.*|)")
_NOT_CODE = ("Captured ", "warnings summary", "short test summary")


def press_pytest(words: Words, lines: Sequence[str]) -> Compressed | None:
    end = next((at for at, line in enumerate(lines, 1) if _SUMMARY.fullmatch(line)), 0)
    if not end:
        return None
    report = _Report()
    for line in lines[:end]:
        report.read(line)
    return Compressed(tuple(report.shown()), end)


def _is_head(line: str) -> bool:
    return _HEAD.fullmatch(line) is not None and not names_a_failure(line)


class _Report:
    """What has been read so far."""

    def __init__(self) -> None:
        self._kept: list[str] = []
        self._files: dict[str, str] = {}
        self._passed_in_all = 0
        self._file = ""
        self._in_progress = True
        self._has_code = False
        self._code: list[str] = []

    def read(self, line: str) -> None:
        if _SUMMARY.fullmatch(line):
            in_all = _PASSED_IN_ALL.search(line)
            self._passed_in_all = int(in_all["count"]) if in_all else 0
            self._keep(line.strip("= "))
        elif rule := _RULE.fullmatch(line):
            self._read_rule(rule["sign"], rule["title"])
        elif self._in_progress:
            self._read_progress(line)
        elif self._has_code and _CODE.fullmatch(line):
            self._code.append(line)
        elif line.startswith(">") and self._has_code:
            # The marked line stands for the function it is in.
            self._kept.extend(code for code in self._code if names_a_failure(code))
            self._code.clear()
            self._keep(line)
        elif line and not _is_head(line):
            self._keep(line)

    def shown(self) -> list[str]:
        self._keep_code()
        if not self._files:
            return self._kept
        # What tests print may stand between a file's name and its marks.
        is_certain = sum(marks.count(".") for marks in self._files.values()) == self._passed_in_all
        if not is_certain:
            return [f"ran {', '.join(self._files)}", *self._kept]
        files = (f"{file} ({_counted(marks)})" for file, marks in self._files.items())
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
        self._has_code = not title.startswith(_NOT_CODE) and not self._in_progress
        if title != "test session starts":
            self._keep(f"{sign * 2} {title}")

    def _read_progress(self, line: str) -> None:
        if dots := _DOTS.fullmatch(line):
            self._file = dots["file"] or self._file
            self._mark(self._file, dots["marks"])
        elif passed := _PASSED.fullmatch(line):
            self._mark(passed["file"] or passed["file_too"], ".")
            if names_a_failure(line):
                self._keep(line)
        elif line and not _is_head(line) and (not _STARTED.fullmatch(line) or names_a_failure(line)):
            self._keep(line)

    def _mark(self, file: str, marks: str) -> None:
        if file:
            self._files[file] = self._files.get(file, "") + marks


def _counted(marks: str) -> str:
    others = marks.replace(".", "")
    return f"{marks.count('.')} {others}" if others else f"{len(marks)}"
