"""What an output says, read by other means than the compressors': places, names and failures as the bare text has them.

`*_of_original` read what a program printed, `*_of_compressed` the shorter form, both to the same values.
"""

from __future__ import annotations

import re

_PLACE = re.compile(r"(?<![\w/.])((?:[\w.-]*/)*[\w-]+\.(?:py|go|rs|js|md|toml|log|txt)):(\d+)")
_FILE = re.compile(r"(?<![\w/.])((?:[\w.-]+/)*[\w-]+\.(?:py|go|rs|js|md|toml|log|txt))\b")
_LIBRARY = ("/usr/lib/go", "/rustc/", "/usr/local/go", "/src/testing/", "/src/runtime/")
"""Frames inside Go and Rust themselves are no files of the project."""
_FAILING = ("FAIL", "Error", "error:", "panic:", "panicked", "✕", "E   ")


def places(text: str) -> set[tuple[str, str]]:
    return {(file.lstrip("/"), number) for line in _of_the_project(text) for file, number in _PLACE.findall(line)}


def file_names(text: str) -> set[str]:
    """The last part of each path that is named."""
    return {path.rpartition("/")[2] for line in _of_the_project(text) for path in _FILE.findall(line)}


def failing_lines(text: str) -> list[str]:
    """Each without blanks and rules around it."""
    lines = [line.strip(" =_-") for line in _of_the_project(text) if any(sign in line for sign in _FAILING)]
    return [line for line in lines if line]


def changes_of_diff(text: str) -> set[tuple[str, str, int, str]]:
    """File, sign, line number and text of each changed line of a unified diff."""
    found: set[tuple[str, str, int, str]] = set()
    file, old, new = "", 0, 0
    for line in text.split("\n"):
        if line.startswith("diff --git"):
            file = line.rpartition(" b/")[2]
        elif hunk := re.match(r"@@ -(\d+)\S* \+(\d+)", line):
            old, new = int(hunk[1]), int(hunk[2])
        elif old or new:
            if line.startswith("-") and not line.startswith("--- "):
                found.add((file, "-", old, line[1:]))
            elif line.startswith("+") and not line.startswith("+++ "):
                found.add((file, "+", new, line[1:]))
            old += not line.startswith("+")
            new += not line.startswith("-")
        if line.startswith("diff --git"):
            old = new = 0
    return found


def changes_of_compressed(text: str) -> set[tuple[str, str, int, str]]:
    found: set[tuple[str, str, int, str]] = set()
    file, old, new = "", 0, 0
    for line in text.split("\n"):
        if line.startswith("=== "):
            file = line[4:].split(" (")[0]
        elif line.startswith("@@ "):
            numbers = [abs(int(number)) for number in line[3:].split()]
            old, new = numbers[0], numbers[-1]
        elif line.startswith("-"):
            found.add((file, "-", old, line[1:]))
            old += 1
        elif line.startswith("+"):
            found.add((file, "+", new, line[1:]))
            new += 1
    return found


def matches_of_grep(text: str) -> set[tuple[str, str, str]]:
    """File, line number and text without its indentation. For files without `:` and `-NUMBER-` in their names."""
    found: set[tuple[str, str, str]] = set()
    for line in text.split("\n"):
        if match := re.match(r"(\S+?\.py)[:-](\d+)[:-](.*)", line):
            found.add((match[1], match[2], match[3].strip()))
    return found


def matches_of_compressed(text: str) -> set[tuple[str, str, str]]:
    found: set[tuple[str, str, str]] = set()
    folder, file = "", ""
    for line in text.split("\n"):
        if match := re.match(r"(\d+)[:-](.*)", line):
            found.add((file, match[1], match[2]))
        elif line.endswith("/"):
            folder = line
        else:
            file = line if "/" in line else folder + line
    return found


def subjects_of_log(text: str) -> list[tuple[str, str]]:
    """The first eight digits of each commit's hash, and the first line of its message."""
    return re.findall(r"^commit (\w{8})\w+\n(?:\w+: .*\n)+\n    (.*)$", text, re.MULTILINE)


def _of_the_project(text: str) -> list[str]:
    return [line for line in text.split("\n") if not any(mark in line for mark in _LIBRARY)]
