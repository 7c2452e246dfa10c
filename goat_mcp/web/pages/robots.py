"""What a robots.txt allows us (RFC 9309). Fetching it is the business of `fetching`."""

from __future__ import annotations

import re
import string
from typing import NamedTuple
from urllib.parse import quote

PRODUCT = "goat-mcp"
MAX_BYTES = 500 * 1024
"""As much as RFC 9309 asks a crawler to read."""
_MAX_RULES = 5_000
_EVERYBODY = "*"
_KEPT = "/?:@!$&'()*+,;=-._~%#[]"
_UNRESERVED = frozenset(string.ascii_letters + string.digits + "-._~")
_ESCAPED = re.compile("%[0-9A-Fa-f]{2}")
_END_OF_PRODUCT = re.compile(r"[/\s]")


class _Rule(NamedTuple):
    pattern: str
    allows: bool


class Robots:
    """The rules for us: those that name us, else those for everybody."""

    def __init__(self, text: str) -> None:
        self._rules = _rules_for_us(text)

    def allows(self, path: str) -> bool:
        """Whether `path` (with its query) may be fetched. The longest matching rule counts, allowing ones first."""
        if path == "/robots.txt":
            return True
        path = _comparable(path)
        matching = [rule for rule in self._rules if _matches(rule.pattern, path)]
        if not matching:
            return True
        return max(matching, key=lambda rule: (len(rule.pattern), rule.allows)).allows


def _rules_for_us(text: str) -> list[_Rule]:
    """The rules of all groups that name us, else of those for everybody. Nothing is kept of the others."""
    rules: dict[str, list[_Rule]] = {}
    reading: set[str] = set()
    in_rules = False
    for line in text.removeprefix("\ufeff").splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            if in_rules:
                reading, in_rules = set[str](), False
            # Some write a version or a remark after the name.
            agent = _END_OF_PRODUCT.split(value.lower(), maxsplit=1)[0]
            if agent in (PRODUCT, _EVERYBODY):
                reading.add(agent)
                rules.setdefault(agent, [])
        elif key in ("allow", "disallow"):
            in_rules = True
            for agent in reading:
                if value and len(rules[agent]) < _MAX_RULES:
                    rules[agent].append(_Rule(_comparable(value), key == "allow"))
    return rules.get(PRODUCT, rules.get(_EVERYBODY, []))


def _comparable(text: str) -> str:
    """One spelling for each path or pattern, as RFC 9309 (2.2.2) has it: `/%7Ejoe` is `/~joe`, `/%c3` is `/%C3`."""
    return _ESCAPED.sub(_one_spelling, quote(text, safe=_KEPT))


def _one_spelling(escaped: re.Match[str]) -> str:
    char = chr(int(escaped[0][1:], 16))
    return char if char in _UNRESERVED else escaped[0].upper()


def _matches(pattern: str, path: str) -> bool:
    """`*` is any text, `$` at the end is the path's end. Parts are looked for one after the other: no backtracking."""
    is_anchored = pattern.endswith("$")
    head, *parts = pattern.removesuffix("$").split("*")
    if not path.startswith(head):
        return False
    if not parts:
        return not is_anchored or path == head
    at = len(head)
    *middle, last = parts
    for part in middle:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    if is_anchored:
        return path.endswith(last) and len(path) - len(last) >= at
    return path.find(last, at) >= 0
