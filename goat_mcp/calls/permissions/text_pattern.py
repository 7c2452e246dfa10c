"""Patterns in which `*` stands for any text, as a regular expression that cannot run away."""

from __future__ import annotations

import re
from collections.abc import Callable


def text_pattern(text: str) -> Callable[[str], object]:
    """A function that tells whether a whole text is meant. Raises `ValueError` for an empty pattern."""
    if not text:
        raise ValueError("the pattern is empty")
    # Each part is found as early as it can be and never looked for again: no pattern makes this slow.
    first, *rest = re.sub(r"\*+", "*", text).split("*")
    parts = [re.escape(first), *(f"(?>.*?{re.escape(part)})" for part in rest[:-1])]
    last = f".*{re.escape(rest[-1])}" if rest else ""
    return re.compile("".join(parts) + last, re.DOTALL).fullmatch
