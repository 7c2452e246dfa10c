"""Reads the part of Seatbelt's language that our profiles use, and says what a profile allows. No Mac is asked.

What is not certain about the real one can be chosen, so that a profile is right either way: whether rules for one
operation come before rules for a group of them, and whether `subpath` includes the path itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

Expression = str | list["Expression"]
_TOKEN = re.compile(
    r'\s+|;[^\n]*|(?P<open>\()|(?P<close>\))|"(?P<text>(?:[^"\\]|\\.)*)"|(?P<word>[^\s()";]+)', re.DOTALL
)
_TEXT = "\0"
"""Before a string, to tell it from a word."""


def read(profile: str) -> list[Expression]:
    """Raises `ValueError` if something is not closed or not of the language."""
    stack: list[list[Expression]] = [[]]
    at = 0
    while at < len(profile):
        token = _TOKEN.match(profile, at)
        if token is None:
            raise ValueError(f"not of the language: {profile[at : at + 40]!r}")
        at = token.end()
        if token["open"]:
            stack.append([])
        elif token["close"]:
            if len(stack) == 1:
                raise ValueError("closed too often")
            done = stack.pop()
            stack[-1].append(done)
        elif token["text"] is not None:
            stack[-1].append(_TEXT + re.sub(r"\\(.)", r"\1", token["text"], flags=re.DOTALL))
        elif token["word"]:
            stack[-1].append(token["word"])
    if len(stack) != 1:
        raise ValueError("not closed")
    return stack[0]


@dataclass(frozen=True)
class Rule:
    allows: bool
    operations: tuple[str, ...]
    filters: tuple[list[Expression], ...]


Subject = Mapping[str, str]
"""What an operation is about: `path`, `remote`, `local`, `global-name`, `sysctl-name`, `target`, `extension`."""


@dataclass(frozen=True)
class Profile:
    rules: tuple[Rule, ...]
    specific_first: bool = False
    subpath_has_itself: bool = True

    @classmethod
    def of(cls, text: str, *, specific_first: bool = False, subpath_has_itself: bool = True) -> Profile:
        version, default, *rest = read(text)
        assert version == ["version", "1"] and default == ["deny", "default"]
        return cls(tuple(map(_rule, rest)), specific_first, subpath_has_itself)

    @classmethod
    def readings(cls, text: str) -> Iterator[Profile]:
        """The profile under each reading of the language."""
        for first, itself in product((False, True), repeat=2):
            yield cls.of(text, specific_first=first, subpath_has_itself=itself)

    def allows(self, operation: str, path: str = "", **subject: str) -> bool:
        about = {"path": path, **{name.replace("_", "-"): value for name, value in subject.items()}}
        matching = [rule for rule in self.rules if self._matches(rule, operation, about)]
        if self.specific_first and (exact := [rule for rule in matching if operation in rule.operations]):
            matching = exact
        return bool(matching) and matching[-1].allows

    def _matches(self, rule: Rule, operation: str, subject: Subject) -> bool:
        named = any(
            operation == one or (one.endswith("*") and operation.startswith(one[:-1])) for one in rule.operations
        )
        return named and (not rule.filters or any(self._fits(one, subject) for one in rule.filters))

    def _fits(self, one: list[Expression], subject: Subject) -> bool:
        name, *values = one
        if name == "require-all":
            return all(self._fits(_list(value), subject) for value in values)
        words = [value.removeprefix(_TEXT) for value in values if isinstance(value, str)]
        assert len(words) == len(values)
        path = subject.get("path", "")
        match name, words:
            case "literal", [text]:
                return path == text
            case "subpath", [text]:
                return path.startswith(text.rstrip("/") + "/") or (path == text and self.subpath_has_itself)
            case "regex", [text]:
                return re.search(text, path) is not None
            case (("remote" | "local"), ["ip", text]):
                given = subject.get(str(name), "")
                return bool(given) and (text == "*:*" or given == text)
            case (("sysctl-name-prefix"), [text]):
                return subject.get("sysctl-name", "").startswith(text) and "sysctl-name" in subject
            case (
                ("global-name" | "sysctl-name" | "target" | "extension" | "socket-domain" | "socket-protocol"),
                [text],
            ):
                return subject.get(str(name)) == text
            case _:
                raise ValueError(f"not of the language: {one}")


def _rule(expression: Expression) -> Rule:
    action, *rest = _list(expression)
    assert action in ("allow", "deny")
    operations = tuple(one for one in rest if isinstance(one, str))
    filters = tuple(one for one in rest if not isinstance(one, str))
    assert operations and rest == [*operations, *filters]
    return Rule(action == "allow", operations, filters)


def _list(expression: Expression) -> list[Expression]:
    assert isinstance(expression, list)
    return expression
