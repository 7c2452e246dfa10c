"""Glob patterns: `**`, braces, classes, `?`, escapes, as a regular expression that cannot run away.

Paths are relative, with `/` between names. What a pattern means as an ignore rule is the business of `path_rules`; this
module knows no files. wcmatch is no replacement: see design/0007.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from goat_mcp.core import platform

MAX_ALTERNATIVES = 512
MAX_PATTERN_CHARS = 4096
MAX_EXPANDED_CHARS = 64 * 1024
_MAGIC = re.compile(r"[*?\[{\\]")
_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "ascii": "\\x00-\\x7f",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r\\x0b\\x0c",
    "upper": "A-Z",
    "word": "a-zA-Z0-9_",
    "xdigit": "0-9a-fA-F",
}


class BadGlob(ValueError):
    """The pattern is no glob; the text says why."""


@dataclass(frozen=True)
class GlobPattern:
    """One parsed pattern.

    `literal_names` are the leading names without magic: nothing outside that directory can match.
    `max_depth` is how many names a match has; None if `**` leaves that open.
    """

    text: str
    expression: str
    literal_names: tuple[str, ...]
    max_depth: int | None

    @classmethod
    def parse(cls, text: str) -> GlobPattern:
        """Raises `BadGlob`."""
        if len(text) > MAX_PATTERN_CHARS:
            raise BadGlob(f"the pattern has {len(text)} characters; at most {MAX_PATTERN_CHARS} are read")
        plain = [_names(alternative) for alternative in expand_braces(text)]
        expressions = dict.fromkeys(names_expression(names) for names in plain)
        depths = [None if "**" in names else len(names) for names in plain]
        return cls(
            text=text,
            expression="|".join(expressions),
            literal_names=_common_literals(plain),
            max_depth=None if None in depths else max(depth or 0 for depth in depths),
        )


def slashed(text: str) -> str:
    """A path or a glob with `/` alone. On Windows no name has a backslash, and there it escapes nothing."""
    return text.replace("\\", "/") if platform.SYSTEM == "windows" else text


def has_magic(text: str) -> bool:
    return _MAGIC.search(text) is not None


def split_globs(text: str) -> list[str]:
    """Split a list of globs on commas and blanks that are outside braces, classes and escapes."""
    globs: list[str] = []
    current = ""
    depth = 0
    position = 0
    while position < len(text):
        char = text[position]
        step = 2 if char == "\\" and position + 1 < len(text) else 1
        if char == "{":
            depth += 1
        elif char == "}":
            depth = max(0, depth - 1)
        if depth == 0 and (char == "," or char.isspace()):
            globs.append(current)
            current = ""
        else:
            current += text[position : position + step]
        position += step
    globs.append(current)
    return [glob for glob in globs if glob]


def expand_braces(text: str) -> list[str]:
    """`a{b,c}` as `ab` and `ac`, innermost last. Raises `BadGlob` for an open brace or too many alternatives."""
    pending = [text]
    done: list[str] = []
    while pending:
        current = pending.pop()
        found = _first_braces(current)
        if found is None:
            done.append(current)
        else:
            start, end, parts = found
            pending.extend(current[:start] + part + current[end:] for part in reversed(parts))
        if len(pending) + len(done) > MAX_ALTERNATIVES or len(text) * len(done) > MAX_EXPANDED_CHARS:
            raise BadGlob("the braces give more alternatives than are read")
    return done


def _first_braces(text: str) -> tuple[int, int, list[str]] | None:
    depth = 0
    start = 0
    cuts: list[int] = []
    for position, char in _unescaped(text):
        if char == "{":
            if depth == 0:
                start = position
            depth += 1
        elif char == "}" and depth:
            depth -= 1
            if depth == 0:
                edges = [start, *cuts, position]
                return start, position + 1, [text[a + 1 : b] for a, b in pairwise(edges)]
        elif char == "," and depth == 1:
            cuts.append(position)
    if depth:
        raise BadGlob("an opening { has no closing }")
    return None


def _unescaped(text: str) -> Iterator[tuple[int, str]]:
    """Characters that are neither escaped nor inside a `[class]`."""
    position = 0
    while position < len(text):
        char = text[position]
        if char == "\\":
            position += 2
            continue
        if char == "[":
            end = _class_end(text, position)
            if end is not None:
                position = end
                continue
        yield position, char
        position += 1


def _class_end(text: str, start: int) -> int | None:
    """Where the class that opens at `start` ends (exclusive), None if it does not."""
    position = start + 1
    if text[position : position + 1] in ("!", "^"):
        position += 1
    if text[position : position + 1] == "]":
        position += 1
    while position < len(text):
        if text[position] == "]":
            return position + 1
        if text.startswith("[:", position):
            end = text.find(":]", position)
            position = end + 2 if end > 0 else position + 1
        else:
            position += 2 if text[position] == "\\" else 1
    return None


def _names(text: str) -> list[str]:
    names = [name for name in text.split("/") if name not in ("", ".")]
    plain: list[str] = []
    for name in names:
        if name == "**" and plain and plain[-1] == "**":
            continue
        plain.append(name)
    return plain


def _common_literals(patterns: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """The leading directories all alternatives share; the last name is never one of them."""
    common: list[str] = []
    for level in range(min(len(names) for names in patterns)):
        here = {names[level] if level < len(names) - 1 else "*" for names in patterns}
        name = here.pop()
        if here or has_magic(name):
            break
        common.append(name)
    return tuple(common)


def names_expression(names: Sequence[str]) -> str:
    """A regular expression (DOTALL) for a whole path. Every part before the last of its kind matches as early as it can
    and is then never reconsidered (atomic groups), so no pattern makes matching explode."""
    runs: list[list[str]] = [[]]
    for name in names:
        if name == "**":
            runs.append([])
        else:
            runs[-1].append(name)
    parsed = [[_name_expression(name) for name in run] for run in runs]
    if len(parsed) == 1:
        return "/".join(parsed[0])
    first, *middle, last = parsed
    expression = "".join(f"{name}/" for name in first)
    for run in middle:
        expression += "(?>(?:[^/]+/)*?" + "".join(f"{name}/" for name in run) + ")"
    if runs[-1] in ([], ["*"]):
        return expression + ".+"
    if len(last) == 1 and runs[-1][0].startswith("*") and runs[-1][0].count("*") == 1:
        return expression + ".*" + _name_expression(runs[-1][0][1:])  # the same, and much faster
    return expression + "(?:[^/]+/)*?" + "/".join(last)


def _name_expression(name: str) -> str:
    chunks = [""]
    position = 0
    while position < len(name):
        char = name[position]
        if char == "*":
            chunks.append("")
            position += 1
        elif char == "?":
            chunks[-1] += "[^/]"
            position += 1
        elif char == "[":
            end = _class_end(name, position)
            if end is None:
                raise BadGlob("an opening [ has no closing ]")
            chunks[-1] += class_expression(name[position:end])
            position = end
        elif char == "\\" and position + 1 < len(name):
            chunks[-1] += re.escape(name[position + 1])
            position += 2
        else:
            chunks[-1] += re.escape(char)
            position += 1
    first, *rest = chunks
    if not rest:
        return first
    *middle, last = rest
    return first + "".join(f"(?>[^/]*?{chunk})" for chunk in middle if chunk) + f"[^/]*{last}(?![^/])"


def class_expression(text: str) -> str:
    """`[!a-z]` of a glob as a class of a regular expression; a `/` is never in it."""
    negated = text[1] in "!^"
    body = text[2:-1] if negated else text[1:-1]
    members = ""
    position = 0
    while position < len(body):
        posix = re.match(r"\[:(\w+):\]", body[position:])
        if posix:
            if posix[1] not in _POSIX_CLASSES:
                raise BadGlob(f"unknown class [:{posix[1]}:]")
            members += _POSIX_CLASSES[posix[1]]
            position += posix.end()
            continue
        low, position = _class_char(body, position)
        if body[position : position + 1] == "-" and position + 1 < len(body):
            high, position = _class_char(body, position + 1)
            if low > high:
                raise BadGlob(f"the range {low}-{high} is empty")
            members += f"{_escaped(low)}-{_escaped(high)}"
        else:
            members += _escaped(low)
    if negated:
        return f"[^/{members}]"
    return f"(?!/)[{members}]"


def _class_char(body: str, position: int) -> tuple[str, int]:
    if body[position] == "\\" and position + 1 < len(body):
        return body[position + 1], position + 2
    return body[position], position + 1


def _escaped(char: str) -> str:
    return "\\" + char if char in "\\]^-[&~|" else char
