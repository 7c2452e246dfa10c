"""Where lines end, in text and in a file's UTF-8 bytes: at CRLF, LF and CR, and nowhere else (not at a form feed)."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Eol = Literal["lf", "crlf", "cr", "mixed", "none"]


def split_lines(text: str) -> list[str]:
    """The lines of `text`, each with its terminator. No empty last line: `"a\\n"` is one line, `""` is none."""
    # With newline="" StringIO knows exactly our three terminators; str.splitlines knows eight more.
    return io.StringIO(text, newline="").readlines()


def line_ending(text: str) -> Eol:
    """The terminator all lines of `text` share; "mixed" where they differ, "none" where there is none."""
    if "\r" not in text:
        return "lf" if "\n" in text else "none"
    crlf = text.count("\r\n")
    return eol_of_counts(lf=text.count("\n") - crlf, crlf=crlf, cr=text.count("\r") - crlf)


def eol_of_counts(*, lf: int, crlf: int, cr: int) -> Eol:
    """The one name for how many lines end in which way."""
    used: list[Eol] = []
    if lf:
        used.append("lf")
    if crlf:
        used.append("crlf")
    if cr:
        used.append("cr")
    if len(used) > 1:
        return "mixed"
    return used[0] if used else "none"


_FIRST_STEP_BYTES = 256
"""How far to look for a line end at first; long lines are looked through in growing steps."""


@dataclass(frozen=True)
class FileText:
    """A file's text as UTF-8 bytes without a BOM, whatever its encoding on disk."""

    data: bytes

    @cached_property
    def line_end(self) -> bytes | None:
        """The terminator all lines share; `b""` if there is none, None if they differ."""
        data = self.data
        if b"\r" not in data:
            return b"\n" if b"\n" in data else b""
        feeds = data.count(b"\n")
        if feeds == 0:
            return b"\r"
        return b"\r\n" if feeds == data.count(b"\r") == data.count(b"\r\n") else None


def line_start(content: bytes, at: int) -> int:
    """The offset where the line that holds offset `at` begins. A terminator belongs to the line it ends."""
    if content[at - 1 : at + 1] == b"\r\n":
        at -= 1
    step = _FIRST_STEP_BYTES
    while True:
        low = max(0, at - step)
        found = max(content.rfind(b"\n", low, at), content.rfind(b"\r", low, at))
        if found >= 0 or low == 0:
            return found + 1
        step *= 4


def line_end(content: bytes, at: int) -> tuple[int, int]:
    """The offsets where the line that holds `at` ends, without and with its terminator."""
    if content[at - 1 : at + 1] == b"\r\n":
        return at - 1, at + 1
    step = _FIRST_STEP_BYTES
    while True:
        high = min(len(content), at + step)
        found = content.find(b"\n", at, high)
        returned = content.find(b"\r", at, high if found < 0 else found)
        if returned >= 0:
            found = returned
        if found >= 0:
            return found, found + (2 if content[found : found + 2] == b"\r\n" else 1)
        if high == len(content):
            return high, high
        step *= 4


def is_line_start(content: bytes, at: int) -> bool:
    """Whether a line begins at `at`, or would if there were more text."""
    if at == 0:
        return True
    before = content[at - 1]
    return before == 0x0A or (before == 0x0D and content[at : at + 1] != b"\n")


def count_line_ends(content: bytes, start: int, end: int) -> int:
    """How many lines end in `content[start:end]`."""
    count = content.count(b"\n", start, end)
    if content.find(b"\r", start, end) >= 0:
        count += content.count(b"\r", start, end) - content.count(b"\r\n", start, end)
    return count


def count_lines(content: bytes) -> int:
    """Lines, a last one without a terminator included."""
    return count_line_ends(content, 0, len(content)) + (not is_line_start(content, len(content)))


def lines_between(content: bytes, start: int, end: int) -> Iterator[bytes]:
    """The lines of `content[start:end]`, each with its terminator."""
    while start < end:
        _, after = line_end(content, start)
        yield content[start : min(after, end)]
        start = after


def common_ends(old: Sequence[object], new: Sequence[object]) -> tuple[int, int]:
    """How many lines (or characters) at the head, and of the rest at the tail, are the same."""
    shorter = min(len(old), len(new))
    head = next((index for index, (one, two) in enumerate(zip(old, new, strict=False)) if one != two), shorter)
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return head, tail
