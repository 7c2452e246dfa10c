"""What a robots.txt allows us (RFC 9309). Fetching it is the business of `fetching`."""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import quote

PRODUCT = "goat-mcp"
MAX_BYTES = 500 * 1024
"""As much as RFC 9309 asks a crawler to read."""
_MAX_RULES = 5_000
_KEPT = "/?:@!$&'()*+,;=-._~%#[]"


class _Rule(NamedTuple):
    pattern: str
    allows: bool


class Robots:
    """The rules for us: those that name us, else those for everybody."""

    def __init__(self, text: str) -> None:
        groups = _groups(text)
        self._rules = groups.get(PRODUCT, groups.get("*", []))

    def allows(self, path: str) -> bool:
        """Whether `path` (with its query) may be fetched. The longest matching rule counts, allowing ones first."""
        if path == "/robots.txt":
            return True
        matching = [rule for rule in self._rules if _matches(rule.pattern, path)]
        if not matching:
            return True
        return max(matching, key=lambda rule: (len(rule.pattern), rule.allows)).allows


def _groups(text: str) -> dict[str, list[_Rule]]:
    """Rules by agent in lower case. Groups of one agent are taken together."""
    groups: dict[str, list[_Rule]] = {}
    agents: list[str] = []
    in_rules = False
    count = 0
    for line in text.removeprefix("\ufeff").splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            if in_rules:
                agents, in_rules = [], False
            agents.append(value.lower())
            groups.setdefault(agents[-1], [])
        elif key in ("allow", "disallow"):
            in_rules = True
            count += 1
            if value and count <= _MAX_RULES:
                for agent in agents:
                    groups[agent].append(_Rule(quote(value, safe=_KEPT), key == "allow"))
    return groups


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
