"""Where lines end: CRLF, LF and CR split lines, nothing else does (not form feed, not U+2028)."""

from __future__ import annotations

import io
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
