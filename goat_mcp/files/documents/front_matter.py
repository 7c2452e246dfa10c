"""A Markdown file that begins with YAML between two lines of `---`, as agent types and skills have it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

MAX_FRONT_MATTER_CHARS = 20_000
_FRONT_MATTER = re.compile(r"\ufeff?---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL | re.MULTILINE)
_PLAIN_LINE = re.compile(r"([A-Za-z][A-Za-z_-]*):[ \t]*(.*)")

Fields = Mapping[str, Any]


class BrokenFrontMatter(ValueError):
    """The text says why, and shows nothing of the file."""


def split_front_matter(content: bytes) -> tuple[Fields, str]:
    """Front matter and body. Raises `BrokenFrontMatter`."""
    front, body = front_matter_text(content)
    return _front_matter(front), body.strip()


def front_matter_text(content: bytes) -> tuple[str, str]:
    """The two parts as they are written. Raises `BrokenFrontMatter`."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        raise BrokenFrontMatter("it is not UTF-8 text") from None
    found = _FRONT_MATTER.match(text)
    if found is None:
        raise BrokenFrontMatter("it does not begin with front matter between two lines of ---")
    front, body = found.groups()
    if len(front) > MAX_FRONT_MATTER_CHARS:
        raise BrokenFrontMatter(f"its front matter is longer than {MAX_FRONT_MATTER_CHARS} characters")
    return front, body


def _front_matter(text: str) -> Fields:
    import yaml

    try:
        loaded: Any = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as problem:
        # Many descriptions in the wild hold `: ` unquoted, which is no YAML and still means what it says.
        if (plain := _plain_lines(text)) is not None:
            return plain
        mark = getattr(problem, "problem_mark", None)
        where = f", line {mark.line + 2}" if mark is not None else ""
        raise BrokenFrontMatter(f"its front matter is not YAML{where}") from None
    if not isinstance(loaded, dict):
        raise BrokenFrontMatter("its front matter is not `key: value`")
    return {key: value for key, value in cast("dict[Any, Any]", loaded).items() if isinstance(key, str)}


def _plain_lines(text: str) -> Fields | None:
    """The front matter if each line is `key: text`; None if one is something else."""
    fields: dict[str, Any] = {}
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        found = _PLAIN_LINE.match(line)
        if found is None or found.group(1) in fields:
            return None
        value = found.group(2).strip()
        if value[:1] in ("[", "{", "|", ">", "&", "*", "!") and found.group(1) != "description":
            return None
        fields[found.group(1)] = value
    return fields
