"""`jest` and `vitest`: what failed and the summary, whole; files that passed, by name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.compression.compressed import Compressed
from goat_mcp.commands.compression.failures import names_a_failure
from goat_mcp.commands.shell.names import Words

_PASSED_FILE = re.compile(r" *(?:PASS|[✓√]) +(?:\|\S+\| +)?(?P<file>[^\s(]+\.[cm]?[jt]sx?)(?: .*)?")
_LINE = re.compile(r"\u23af{3,}(?: (?P<title>.+?) )?\u23af*|\u23af+\[\d+/\d+\]\u23af*")
_PASSED_TEST = re.compile(r" +[✓√] .+")
_STEP = re.compile(r"> \S.*|yarn run v.+|\$ .+|Ran all test suites.*|Done in .+|Snapshots: +0 total")
_SUMMARY = re.compile(r" *(?:Tests:?|Test Suites:|Test Files) +\S.*")


def press_jest(words: Words, lines: Sequence[str]) -> Compressed | None:
    if not any(_SUMMARY.fullmatch(line) for line in lines):
        return None
    ran: dict[str, None] = {}
    kept: list[str] = []
    for line in lines:
        if names_a_failure(line):
            kept.append(line)
        elif file := _PASSED_FILE.fullmatch(line):
            ran[file["file"]] = None
        elif rule := _LINE.fullmatch(line):
            kept.extend([rule["title"]] if rule["title"] else [])
        elif line.strip() and not _PASSED_TEST.fullmatch(line) and not _STEP.fullmatch(line):
            kept.append(line)
    return Compressed((f"ran {', '.join(ran)}", *kept) if ran else tuple(kept), len(lines))
