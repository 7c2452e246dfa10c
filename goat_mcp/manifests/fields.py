"""Reads a document's members. A missing, unknown or wrong one becomes a problem with line and remedy."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar, cast

from goat_mcp.core.suggestions import did_you_mean
from goat_mcp.core.yaml_words import meant_word
from goat_mcp.manifests.yaml_document import Level, ManifestProblem, ValuePath, YamlDocument

Known = TypeVar("Known", bound=str)
_SHOWN_CHARS = 60
_ANY_TEXT = re.compile(r".+")


class Fields:
    """One mapping of a document. Problems are collected in `problems`, which all mappings of a document share."""

    def __init__(
        self, document: YamlDocument, path: ValuePath, tree: Mapping[str, Any], problems: list[ManifestProblem]
    ) -> None:
        self.document = document
        self.path = path
        self.tree = tree
        self.problems = problems

    def fail(self, what: str, remedy: str, *below: str | int, level: Level = "error") -> None:
        """Note a problem with the member at `below`, or with this mapping."""
        self.problems.append(self.document.problem((*self.path, *below), what, remedy, level=level))

    def name_of(self, key: str) -> str:
        """The member as a person finds it: `spec.exports[0].name`."""
        text = ""
        for step in (*self.path, key):
            text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
        return text

    def only(self, *known: str) -> None:
        """Every member is one of these."""
        for key in self.tree:
            if key not in known:
                remedy = did_you_mean(key, known) or f"known are {', '.join(known)}"
                self.fail(f"{self.name_of(key)} is unknown", remedy, key)

    def describe(self, value: Any, *below: str | int) -> str:
        """The value at `below` as a person would recognise it."""
        return self.document.describe((*self.path, *below), value)

    def quoting_hint(self, *below: str | int) -> str:
        """What to write there to mean a text; empty if it is one, or a collection."""
        return self.document.quoting_hint((*self.path, *below))

    def text(
        self,
        key: str,
        *,
        default: str | None = None,
        what: str = "a text",
        pattern: re.Pattern[str] = _ANY_TEXT,
    ) -> str:
        """Required without a default. `pattern` is of those that quotes could make out of another value."""
        value = self._value(key, str, what, default, pattern=pattern)
        if isinstance(value, str) and not value.strip() and default is None:
            self.fail(f"{self.name_of(key)} is empty", f"write {what}", key)
        return cast("str", value) if value is not None else ""

    def matching(self, key: str, pattern: re.Pattern[str], wanted: str) -> str:
        """A required text of a shape."""
        text = self.text(key, what=wanted, pattern=pattern)
        if text.strip() and not pattern.fullmatch(text):
            self.fail(f"{self.name_of(key)}: {text!r:.{_SHOWN_CHARS}} is no usable name", f"write {wanted}", key)
        return text

    def choice(self, key: str, known: Collection[Known], *, default: Known | None = None) -> Known | None:
        value = meant_word(self.tree.get(key), known)
        if value is None:
            return default
        if value not in known:
            hint = did_you_mean(str(value), known, most=1) or f"write one of {', '.join(known)}"
            self.fail(f"{self.name_of(key)}: {self.describe(value, key)} is unknown", hint, key)
            return default
        return cast("Known", value)

    def integer(self, key: str, default: int, *, least: int, most: int, is_clamped: bool = False) -> int:
        """`is_clamped`: one out of range counts as the nearest within it, with a warning."""
        value = self._value(key, int, f"a whole number from {least} to {most}", default)
        if not isinstance(value, int) or least <= value <= most:
            return cast("int", value)
        what, remedy = f"{self.name_of(key)}: {value!s:.{_SHOWN_CHARS}} is out of range", f"write {least} to {most}"
        if not is_clamped:
            self.fail(what, remedy, key)
            return default
        nearest = min(max(value, least), most)
        self.fail(f"{what} and counts as {nearest}", remedy, key, level="warning")
        return nearest

    def flag(self, key: str, default: bool | None = None) -> bool | None:
        value: Any = self._value(key, bool, "true or false", default)
        return value

    def mapping(self, key: str, *, required: bool = False) -> Fields | None:
        """The member's own fields; None if it is missing."""
        value = self._value(key, dict, "members, as `key: value`", None, required=required)
        if value is None:
            return None
        return Fields(self.document, (*self.path, key), cast("dict[str, Any]", value), self.problems)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of texts; a single one is a list of one."""
        value = self.tree.get(key)
        if value is None:
            return ()
        items = cast("list[Any]", value) if isinstance(value, list) else [value]
        for index, item in enumerate(items):
            if not isinstance(item, str):
                below = (key, index) if isinstance(value, list) else (key,)
                what = f"{self.name_of(key)} holds {self.describe(item, *below)}"
                self.fail(what, self.quoting_hint(*below) or "write texts; quote what looks otherwise", *below)
        return tuple(item for item in items if isinstance(item, str))

    def text_map(self, key: str) -> Mapping[str, str]:
        """Names with texts. Numbers are taken as they are written."""
        inner = self.mapping(key)
        if inner is None:
            return {}
        for name, value in inner.tree.items():
            if isinstance(value, dict | list | bool) or value is None:
                what = f"{inner.name_of(name)} is {inner.describe(value, name)}"
                inner.fail(what, inner.quoting_hint(name) or "write a text; quote it", name)
        return {name: str(value) for name, value in inner.tree.items()}

    def each(self, key: str) -> Iterator[Fields]:
        """The members of a required list of mappings."""
        value = self._value(key, list, "a list with at least one entry, each begun with `- `", None, required=True)
        items = cast("Sequence[Any]", value or ())
        if value is not None and not items:
            self.fail(f"{self.name_of(key)} is empty", "declare at least one", key)
        for index, item in enumerate(items):
            if isinstance(item, dict):
                tree = cast("dict[str, Any]", item)
                yield Fields(self.document, (*self.path, key, index), tree, self.problems)
            else:
                self.fail(
                    f"{self.name_of(key)}[{index}] is {self.describe(item, key, index)}",
                    "write its members",
                    key,
                    index,
                )

    def _value(
        self,
        key: str,
        kind: type,
        wanted: str,
        default: Any,
        *,
        required: bool = True,
        pattern: re.Pattern[str] = _ANY_TEXT,
    ) -> Any:
        value = self.tree.get(key)
        if value is None:
            if default is None and required and kind is not bool:
                state = "is missing" if key not in self.tree else "has no value"
                self.fail(f"{self.name_of(key)} {state}", f"write {wanted}", *((key,) if key in self.tree else ()))
            return default
        is_right = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
        if not is_right:
            word = self.document.literals.get((*self.path, key), "")
            remedy = self.quoting_hint(key) if kind is str and pattern.fullmatch(word) else ""
            self.fail(f"{self.name_of(key)} is {self.describe(value, key)}", remedy or f"write {wanted}", key)
            return default
        return value
