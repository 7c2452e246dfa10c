"""The paths that a word may hold: `k`, `--file=k`, `if=k`, `-fk`, `-d@k`, `host:k`, `"open('k')"`, `file:///k`.

One rule for all programs: in doubt a part counts as a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from goat_mcp.commands.shell.file_use import HERE

_MAX_SUFFIXES = 24
_MAX_LETTERS = 12
_SEPARATOR = re.compile(r"[=@:,]")
_BETWEEN = re.compile(r"[\s\"'`(){}<>;|&=@:,\[\]?#]+")
_FILE_URL = re.compile(rf"file:(?://[^/{HERE}]*)?([/{HERE}].*)", re.IGNORECASE | re.DOTALL)
_ODD_IN_URL = re.compile(r"[%\[\]{}\\]")
_OTHER_HOME = re.compile(r"(?:^|[=:])~[\w.-]")


def parts_of(text: str) -> Iterator[str]:
    yield text
    if text.startswith("-") and not text.startswith("--"):
        for at in range(2, min(len(text), _MAX_LETTERS)):
            yield text[at:]
    for _, found in zip(range(_MAX_SUFFIXES), _SEPARATOR.finditer(text), strict=False):
        yield text[found.end() :]
    if (found := _FILE_URL.search(text)) is not None:
        yield found[1]
    parts = _BETWEEN.split(text)
    if len(parts) > 1:
        yield from filter(None, parts)


def cannot_tell(text: str) -> str:
    """Why a word's paths cannot be followed although its text is known; empty if they can."""
    if _OTHER_HOME.search(text):
        return "of the homes only `~` is followed"
    if (found := _FILE_URL.search(text)) is not None and _ODD_IN_URL.search(found[1]):
        return "a URL with such characters is not followed"
    return ""
