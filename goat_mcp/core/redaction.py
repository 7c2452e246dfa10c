"""Removes secrets from texts before they are logged, recorded or sent: by value, by name and by shape.

It is incomplete by nature: a secret of no known shape that nobody configured, or one that was encoded, is not
recognised. What a tool returns of the user's own files and commands is never touched.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, cast
from urllib.parse import quote

from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError

REDACTED = "[redacted]"
_MIN_VALUE_CHARS = 6
"""Shorter values stand in too many texts by chance."""
_MAX_DEPTH = 12

_NAME = (
    r"authorization|cookie|credentials?|pass(?:word|wd|phrase)|secret(?:[_-]?access)?(?:[_-]?key)?|token"
    r"|(?:api|access|private|signing|encryption|account|auth)[_-]?key|jwt"
)
_SECRET_NAME = re.compile(
    rf"(?:^|[^a-z])(?:{_NAME}|auth|key|secrets|passwords|(?<=[a-z0-9][_-])(?:pwd|pass)|pgpassword|session[_-]?id)$",
    re.I,
)
_PATH = re.compile(r"~?(?:/[^/\0]+){2,}/?")

# Bounded repetitions only: these run over texts that others write.
_SHAPES = (
    r"(?P<block>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----)(?!\[redacted\])"
    r"(?:.{0,20000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|.*)"
    r"|(?P<scheme>\b(?:Bearer|Basic)\s{1,4})[A-Za-z0-9._~+/=:-]{6,}"
    r"|(?P<user>[a-z][a-z0-9+.-]{0,20}://)[^\s/@\"'<>]{1,500}@"
    r"|\bsk-[A-Za-z0-9_-]{8,}"
    r"|\bsk_(?:live|test)_[A-Za-z0-9]{8,}"
    r"|\bgh[pousr]_[A-Za-z0-9]{16,}"
    r"|\bgithub_pat_[A-Za-z0-9_]{16,}"
    r"|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[a-z]-[A-Za-z0-9-]{8,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"
    r"|\bAIza[A-Za-z0-9_-]{30,}"
    r"|\b(?:npm|hf)_[A-Za-z0-9]{20,}"
    r"|\bpypi-[A-Za-z0-9_-]{30,}"
    r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"
)
_ASSIGNED = (
    # `API_KEY=x`, `--token=x`, `?key=x`, `"token": "x"`: the name stays.
    rf"(?P<name>(?:{_NAME}|(?<=[?&])key)[\"']?\s{{0,4}})"
    # After a colon without quotes there are often plain words: "password: wants text".
    r"(?:(?P<equals>=\s{0,2}[\"']?)(?P<assigned>[^\s\"'&,;)}\]]{4,})"
    r"|(?P<quoted>:\s{0,4}[\"'])(?P<within>[^\"'\r\n]{4,})"
    r"|(?P<colon>:\s{0,4})(?=[^\s\"']{0,200}\d)(?P<word>[^\s\"'&,;)}\]]{8,}))"
)
_MARKS_OF_SHAPES = (
    *("-----begin ", "bearer", "basic", "://", "sk-", "sk_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    *("glpat-", "xox", "akia", "asia", "aiza", "npm_", "hf_", "pypi-", "eyj"),
)
_MARKS_OF_NAMES = ("auth", "cookie", "credential", "pass", "secret", "token", "key", "jwt")
"""One of these is in each text that `_SHAPES`, or `_ASSIGNED`, finds something in. To see that there is none takes a
hundredth of the time."""
_SHAPE_GROUPS = ("block", "scheme", "user")
_RANDOM = re.compile(r"(?=.*\d)(?=.*[A-Za-z])[A-Za-z0-9._~+=:-]{12,}")


class Redactor:
    """Knows the secrets of one process. Values can be added as they are resolved; none is ever given back."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        self.generation = 0
        """Rises with each value that is added."""
        self.add(*values)

    def add(self, *values: str) -> None:
        """Know these values as secrets, as they are and as JSON, URLs and Python write them."""
        added = {form for value in values if len(value.strip()) >= _MIN_VALUE_CHARS for form in _forms(value.strip())}
        if not added <= self._values:
            self._values |= added
            self._pattern = None
            self.generation += 1

    def values(self, text: str) -> str:
        """The text without configured values; the rest stays as it is."""
        if not self._values:
            return text
        if self._pattern is None:
            longest_first = sorted(self._values, key=lambda value: (-len(value), value))
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))
        return self._pattern.sub(REDACTED, text)

    def text(self, text: str) -> str:
        """The text without configured values, without what has a token's shape, and without what a name announces."""
        text = self.values(text)
        plain = text.lower() if text.isascii() else text.casefold()
        shapes, assigned = _patterns()
        if any(mark in plain for mark in _MARKS_OF_SHAPES):
            text = shapes.sub(_keep_kind, text)
        if any(mark in plain for mark in _MARKS_OF_NAMES):
            text = assigned.sub(_keep_name, text)
        return text

    def tree(self, value: Any, *, by_name: bool = True, only_values: bool = False, _depth: int = 0) -> Any:
        """JSON-like data without secrets; `by_name`: a text whose member's name says that it is one is taken out whole.

        `only_values` leaves all but configured values as it is.
        """
        if isinstance(value, str):
            return self.values(value) if only_values else self.text(value)
        if _depth >= _MAX_DEPTH:
            return value if isinstance(value, int | float | bool | None) else REDACTED
        if isinstance(value, Mapping):
            members = cast("Mapping[Any, Any]", value).items()
            by_name = by_name and not only_values
            return {
                self.tree(name, only_values=only_values): REDACTED
                if by_name and isinstance(child, str) and child and is_secret_name(str(name))
                else self.tree(child, by_name=by_name, only_values=only_values, _depth=_depth + 1)
                for name, child in members
            }
        if isinstance(value, list | tuple):
            items = cast("Iterable[Any]", value)
            return [self.tree(item, by_name=by_name, only_values=only_values, _depth=_depth + 1) for item in items]
        return value


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Compiled with the first text: that takes some milliseconds, which a start has not."""
    return re.compile(_SHAPES, re.S | re.I), re.compile(_ASSIGNED, re.I)


def is_secret_name(name: str) -> bool:
    """Whether a variable, header or key of this name holds a secret: `GITHUB_TOKEN`, `x-api-key`, `password`."""
    return _SECRET_NAME.search(name) is not None


def is_likely_secret(name: str, value: str) -> bool:
    """Whether a configured value is taken for a secret: by its name, or because it looks like none a person chose.

    A path, a word or an address under an innocent name is not: taking it out would spoil every message with it.
    """
    if _PATH.fullmatch(value.strip()):
        return False
    return is_secret_name(name) or _RANDOM.fullmatch(value.strip()) is not None


def secrets_among(environ: Mapping[str, str]) -> list[str]:
    """The values of the variables that hold secrets by their name."""
    return [value for name, value in environ.items() if is_secret_name(name) and is_likely_secret(name, value)]


def _forms(value: str) -> set[str]:
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1], quote(value, safe="")}


def _keep_kind(match: re.Match[str]) -> str:
    kept = next((kept for group in _SHAPE_GROUPS if (kept := match.group(group))), "")
    return f"{kept}{REDACTED}{'@' if match.group('user') else ''}"


def _keep_name(match: re.Match[str]) -> str:
    groups = match.groupdict()
    opening = groups["equals"] or groups["quoted"] or groups["colon"] or ""
    secret = groups["assigned"] or groups["within"] or groups["word"] or ""
    if secret.startswith((REDACTED, REDACTED[:-1])):
        return match.group()
    return f"{groups['name']}{opening}{REDACTED}"


_QUOTES_FILES = frozenset(
    {
        ErrorCode.NO_MATCH,
        ErrorCode.AMBIGUOUS,
        ErrorCode.PLACEHOLDER,
        ErrorCode.NO_CHANGE,
        ErrorCode.STALE,
        ErrorCode.NOTEBOOK,
        ErrorCode.CELL,
        ErrorCode.PATTERN,
        ErrorCode.EXIT,
    }
)
"""Their messages quote what a Read of the same file shows; who fixes the edit needs it unchanged."""


def redacted_error(error: ToolError, redactor: Redactor) -> ToolError:
    """The error itself if it holds no secret. `output`, what a tool gave until it failed, is not ours to change."""
    only_values = error.code in _QUOTES_FILES
    clean = redactor.values if only_values else redactor.text
    message, suggestion = clean(error.message), clean(error.suggestion)
    facts = None if error.facts is None else redactor.tree(error.facts, by_name=False, only_values=only_values)
    if (message, suggestion) == (error.message, error.suggestion) and facts == error.facts:
        return error
    return ToolError(
        error.code,
        message,
        suggestion,
        facts=facts,
        output=error.output,
        interrupts=error.interrupts,
        name=error.name,
        help_url=error.help_url,
        message_limit=error.message_limit,
    ).with_traceback(error.__traceback__)


def redacted_upstream_error(error: UpstreamError, redactor: Redactor) -> UpstreamError:
    """What an upstream answered, as it is but for values that only we gave it: its own variables and headers."""
    message, data = redactor.values(error.message), redactor.tree(error.data, only_values=True)
    return error if (message, data) == (error.message, error.data) else UpstreamError(error.code, message, data)
