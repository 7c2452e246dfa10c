"""The arguments of a call as the record for people holds them: bounded, without secrets."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, cast

from goat_mcp.core.redaction import REDACTED, Redactor, is_secret_name

MAX_CHARS = 2048
"""How much of one argument is kept (R-AUDIT-2)."""
_TAKEN_CHARS = 2 * MAX_CHARS
"""More than is kept: a secret at the cut would not be recognised."""
_MAX_VALUES = 200
_MAX_NAME_CHARS = 100
_MAX_DEPTH = 8
_LEFT_OUT = "..."
_VALUE = "value"
_NAMES_OF_A_VALUE = ("name", "key", "setting", "variable", "header")
_COMPACT = json.JSONEncoder(separators=(",", ":"))
"""Only ASCII: what is no text for a database (half of a surrogate pair) is one as JSON."""


class _Start:
    """The beginning of a long text, and how long all of it is."""

    __slots__ = ("chars", "text")

    def __init__(self, text: str, chars: int) -> None:
        self.text = text
        self.chars = chars


class TakenArguments:
    """A bounded copy, in microseconds: nobody can change it, and it keeps no large text in memory. `shown` is slow."""

    __slots__ = ("_left", "_taken")

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        self._left = _MAX_VALUES
        self._taken: dict[str, Any] = self._copy(arguments, 0)

    def _copy(self, value: Any, depth: int) -> Any:
        if isinstance(value, str):
            return value if len(value) <= _TAKEN_CHARS else _Start(value[:_TAKEN_CHARS], len(value))
        if isinstance(value, bool | int | float | None):
            return value
        if depth > _MAX_DEPTH:
            return _LEFT_OUT
        if isinstance(value, Mapping):
            members = cast("Mapping[Any, Any]", value)
            copied = {str(name)[:_MAX_NAME_CHARS]: self._copy(one, depth + 1) for name, one in self._some(members)}
            return copied if len(copied) == len(members) else {**copied, _LEFT_OUT: f"{len(members)} members"}
        if isinstance(value, list | tuple):
            items = cast("Sequence[Any]", value)
            copies = [self._copy(one, depth + 1) for _, one in self._some(dict(enumerate(items[: self._left])))]
            return copies if len(copies) == len(items) else [*copies, f"{_LEFT_OUT} {len(items)} items"]
        return f"({type(value).__name__})"

    def _some(self, members: Mapping[Any, Any]) -> list[tuple[Any, Any]]:
        taken = list(islice(members.items(), max(0, self._left)))
        self._left -= len(taken)
        return taken

    def shown(self, redactor: Redactor) -> str:
        """The arguments as JSON, each cut to `MAX_CHARS`. Takes its time: for a thread."""
        hidden = _secret_members(self._taken)
        shown = {
            redactor.text(name): _one(value, redactor, hidden=name in hidden) for name, value in self._taken.items()
        }
        return _COMPACT.encode(shown)


def _secret_members(members: Mapping[str, Any]) -> set[str]:
    """Those that are a secret by their own name, or by that beside them: `{"name": "API_TOKEN", "value": ...}`."""
    found = {name for name in members if is_secret_name(name)}
    named = (members.get(name) for name in _NAMES_OF_A_VALUE)
    return found | ({_VALUE} if any(is_secret_name(text) for text in named if isinstance(text, str)) else set())


def _one(value: Any, redactor: Redactor, *, hidden: bool) -> Any:
    shown: Any = _without_secrets(value, redactor, hidden=hidden)
    if isinstance(value, dict | list) and len(text := _COMPACT.encode(shown)) > MAX_CHARS:
        return _cut(text, len(text))
    return shown


def _without_secrets(value: Any, redactor: Redactor, *, hidden: bool = False) -> Any:
    if hidden and value and not isinstance(value, bool):
        return REDACTED
    if isinstance(value, str):
        return _cut(redactor.text(value), len(value))
    if isinstance(value, _Start):
        # What was cut away may have been the end of a secret.
        return _cut(redactor.text(value.text)[:-MAX_CHARS], value.chars)
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        secret = _secret_members(members)
        return {
            redactor.text(name): _without_secrets(one, redactor, hidden=name in secret) for name, one in members.items()
        }
    if isinstance(value, list):
        return [_without_secrets(one, redactor) for one in cast("list[Any]", value)]
    return value


def _cut(text: str, chars: int) -> str:
    """`chars`: how long the argument is, which the mark says."""
    if len(text) <= MAX_CHARS and chars <= _TAKEN_CHARS:
        return text
    return f"{text[:MAX_CHARS]}{_LEFT_OUT} ({chars} characters)"
