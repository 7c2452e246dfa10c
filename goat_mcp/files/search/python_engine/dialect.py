"""Regular expressions as ripgrep reads them, in the words of Python's `re`.

The two agree on most of it; what differs is put into Python's words here, and what has none is refused.
"""

from __future__ import annotations

import re

from goat_mcp.files.search.python_engine.char_class import UnsupportedPattern, class_from, property_members

_FLAGS = "imsUux"
_ASSERTIONS = {"z": r"\Z", "A": r"\A", "<": r"\b(?=\w)", ">": r"\b(?<=\w)", "b": r"\b", "B": r"(?!\b)"}
_NAMED_BOUNDARY = re.compile(r"b\{(start|end|start-half|end-half)\}")
_BOUNDARIES = {"start": r"\b(?=\w)", "end": r"\b(?<=\w)", "start-half": r"(?<!\w)", "end-half": r"(?!\w)"}
_HEX = re.compile(r"[xuU]\{([0-9a-fA-F]{1,8})\}")
_HEX_FIXED = re.compile(r"x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}")
_PROPERTY = re.compile(r"([pP])(?:\{(\^?)([^}]*)\}|(\w))")
_GROUP_FLAGS = re.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])")
_ESCAPE_OR_CLASS = re.compile(r"\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]", re.DOTALL)
_QUANTIFIER = re.compile(r"[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\}")


def compile_pattern(patterns: tuple[str, ...], *, literal: bool, ignore_case: bool, multiline: bool) -> re.Pattern[str]:
    """One expression for all patterns. Raises `UnsupportedPattern`, whose text is shown as the engine's."""
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0) | (re.DOTALL if multiline else 0)
    parts = [re.escape(pattern) if literal else _Translation(pattern).result() for pattern in patterns]
    for pattern in patterns:
        if not multiline and "\n" in pattern:
            raise UnsupportedPattern('the literal "\\n" is not allowed in a regex')
    if not multiline and not literal and any(_names_line_feed(pattern) for pattern in patterns):
        raise UnsupportedPattern('the literal "\\n" is not allowed in a regex')
    try:
        return re.compile("|".join(f"(?:{part})" for part in parts), flags)
    except (re.error, OverflowError, RecursionError) as problem:
        shown = "\n".join(f"    {pattern}" for pattern in patterns)
        raise UnsupportedPattern(f"regex parse error:\n{shown}\nerror: {problem}") from None


def _names_line_feed(pattern: str) -> bool:
    """A class may name it beside other characters, or to leave it out: it still matches within a line."""
    return any(found[0] in (r"\n", r"[\n]") for found in _ESCAPE_OR_CLASS.finditer(pattern))


class _Translation:
    """One pass over one pattern."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._position = 0
        self._extended = [False]
        self._swapped = [False]
        self._open_flags = [0]
        """How many flag groups were opened inside each group: they close with it."""

    def result(self) -> str:
        parts: list[str] = []
        while self._position < len(self._pattern):
            parts.append(self._next())
        return "".join(parts) + ")" * self._open_flags[0]

    def _next(self) -> str:
        rest = self._pattern[self._position :]
        char = rest[0]
        if char == "\\":
            return self._escape()
        if char in "^$":
            self._position += 1
            return self._assertion(char)
        if char == "[":
            members, self._position = class_from(self._pattern, self._position)
            return members
        if char == "(":
            return self._group(rest)
        if char == ")":
            return self._close()
        if self._extended[-1] and (char.isspace() or char == "#"):
            return self._skip_comment(char)
        quantifier = _QUANTIFIER.match(rest)
        if quantifier and self._swapped[-1]:
            return self._swap_greed(quantifier[0])
        if quantifier and quantifier[0].startswith("{"):
            self._position += quantifier.end()
            return quantifier[0]
        self._position += 1
        if char == "{":
            raise UnsupportedPattern(
                f"regex parse error:\n    {self._pattern}\nerror: repetition quantifier expects a number"
            )
        return char

    def _escape(self) -> str:
        rest = self._pattern[self._position + 1 :]
        if not rest:
            raise UnsupportedPattern(f"regex parse error:\n    {self._pattern}\nerror: incomplete escape sequence")
        boundary = _NAMED_BOUNDARY.match(rest)
        if boundary:
            self._position += 1 + boundary.end()
            return self._assertion(_BOUNDARIES[boundary[1]])
        code = _HEX.match(rest)
        if code:
            self._position += 1 + code.end()
            return _literal(int(code[1], 16))
        fixed = _HEX_FIXED.match(rest)
        if fixed:
            self._position += 1 + fixed.end()
            return _literal(int(fixed[0][1:], 16))
        named = _PROPERTY.match(rest)
        if named:
            self._position += 1 + named.end()
            negated = (named[1] == "P") != bool(named[2])
            return f"[{'^' if negated else ''}{property_members(named[3] or named[4])}]"
        self._position += 2
        if rest[0] in _ASSERTIONS:
            return self._assertion(_ASSERTIONS[rest[0]])
        if rest[0] == "a":
            return r"\x07"
        if rest[0].isalpha() and rest[0] not in "dDsSwWnrtfvk":
            raise UnsupportedPattern(f"regex parse error:\n    {self._pattern}\nerror: unrecognized escape sequence")
        return "\\" + rest[0]

    def _assertion(self, expression: str) -> str:
        """An assertion with what repeats it: Python repeats none, and once or many times is the same."""
        repeats = _QUANTIFIER.match(self._pattern, self._position)
        if repeats is None:
            return expression
        self._position = repeats.end()
        if self._pattern[self._position : self._position + 1] == "?":
            self._position += 1
        return "" if repeats[0][0] in "*?" or re.match(r"\{0*[,}]", repeats[0]) else expression

    def _group(self, rest: str) -> str:
        flags = _GROUP_FLAGS.match(rest)
        if flags:
            self._position += flags.end()
            return self._flag_group(flags[1], flags[2] or "", flags[3] == ":")
        self._enter()
        if rest.startswith("(?<") and rest[3:4] not in ("=", "!", ""):
            self._position += 3
            return "(?P<"
        for opening in ("(?P<", "(?P=", "(?=", "(?!", "(?<=", "(?<!", "(?>"):
            if rest.startswith(opening):
                self._position += len(opening)
                return opening
        self._position += 1
        return "("

    def _flag_group(self, on: str, off: str, has_body: bool) -> str:
        for flag in on + off:
            if flag not in _FLAGS and flag != "R":
                raise UnsupportedPattern(f"regex parse error:\n    {self._pattern}\nerror: unrecognized flag {flag!r}")
        python_on = "".join(flag for flag in "ims" if flag in on)
        python_off = "".join(flag for flag in "ims" if flag in off)
        opening = f"(?{python_on}{'-' + python_off if python_off else ''}:"
        extended = (self._extended[-1] or "x" in on) and "x" not in off
        swapped = (self._swapped[-1] or "U" in on) and "U" not in off
        if has_body:
            self._enter()
        else:
            self._open_flags[-1] += 1
        self._extended[-1], self._swapped[-1] = extended, swapped
        return opening

    def _enter(self) -> None:
        self._extended.append(self._extended[-1])
        self._swapped.append(self._swapped[-1])
        self._open_flags.append(0)

    def _close(self) -> str:
        self._position += 1
        if len(self._open_flags) == 1:
            raise UnsupportedPattern(f"regex parse error:\n    {self._pattern}\nerror: unopened group")
        self._extended.pop()
        self._swapped.pop()
        return ")" * (self._open_flags.pop() + 1)

    def _skip_comment(self, char: str) -> str:
        end = self._pattern.find("\n", self._position) if char == "#" else self._position
        self._position = len(self._pattern) if end < 0 else end + 1
        return ""

    def _swap_greed(self, quantifier: str) -> str:
        self._position += len(quantifier)
        if self._pattern[self._position : self._position + 1] == "?":
            self._position += 1
            return quantifier
        return quantifier + "?"


def _literal(code: int) -> str:
    try:
        return re.escape(chr(code))
    except (ValueError, OverflowError):
        raise UnsupportedPattern("regex parse error:\nerror: not a Unicode scalar value") from None
