"""The front matter of a `SKILL.md` as JSON, the same for every reader: YAML 1.2's core schema, and nothing besides.

`front_matter` is lenient and reads YAML 1.1, in which `on` is true and `2026-01-01` a date. Hosts compare the JSON of a
skill's entry with what they read in the file (SEP-2640), most with a parser of YAML 1.2. What two parsers could take
for two things is refused here: aliases, tags, keys that are no text, a key twice, numbers that JSON has not.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from goat_mcp.files.documents.front_matter import BrokenFrontMatter, front_matter_text

if TYPE_CHECKING:  # loaded with the first front matter
    import yaml

MAX_LEVELS = 20
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_DECIMAL = re.compile(r"[-+]?[0-9]+\Z")
_BASED = re.compile(r"0o[0-7]+\Z|0x[0-9a-fA-F]+\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_NO_NUMBER = re.compile(r"(?:[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))\Z")
_MAX_DIGITS = 400


def front_matter_json(content: bytes) -> dict[str, Any]:
    """Raises `BrokenFrontMatter`, whose text shows nothing of the file."""
    import yaml

    text, _ = front_matter_text(content)
    try:
        value = _document(yaml.parse(text, Loader=yaml.BaseLoader))  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]  # its stub leaves out what it returns
    except (yaml.YAMLError, ValueError) as problem:
        if isinstance(problem, BrokenFrontMatter):
            raise
        mark = getattr(problem, "problem_mark", None)
        where = f", line {mark.line + 2}" if mark is not None else ""
        raise BrokenFrontMatter(f"its front matter is not YAML{where}; put texts with `: ` in quotes") from None
    if not isinstance(value, dict):
        raise BrokenFrontMatter("its front matter is not `key: value`")
    return cast("dict[str, Any]", value)


def _document(events: Iterator[yaml.Event]) -> Any:
    import yaml

    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            value = _value(next(events), events, MAX_LEVELS)
            next(events)  # the document's end
            if not isinstance(next(events), yaml.StreamEndEvent):
                raise BrokenFrontMatter("its front matter is more than one document")
            return value
    return None


def _value(event: yaml.Event, events: Iterator[yaml.Event], levels: int) -> Any:
    import yaml

    if isinstance(event, yaml.AliasEvent):
        raise BrokenFrontMatter("its front matter has an alias (*)")
    if getattr(event, "tag", None) is not None:
        raise BrokenFrontMatter("its front matter has a tag (!)")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event.value) if event.style is None else event.value
    if not levels:
        raise BrokenFrontMatter(f"its front matter is more than {MAX_LEVELS} levels deep")
    if isinstance(event, yaml.SequenceStartEvent):
        listed: list[Any] = []
        while not isinstance(inner := next(events), yaml.SequenceEndEvent):
            listed.append(_value(inner, events, levels - 1))
        return listed
    found: dict[str, Any] = {}
    while not isinstance(inner := next(events), yaml.MappingEndEvent):
        key = _value(inner, events, levels - 1)
        if not isinstance(key, str) or key in found:
            raise BrokenFrontMatter("its front matter has a key twice, or one that is no text")
        found[key] = _value(next(events), events, levels - 1)
    return found


def _scalar(text: str) -> Any:
    """What a plain scalar stands for. Source: YAML 1.2.2, section 10.3.2."""
    if text in _NULL:
        return None
    if text in _TRUTH:
        return _TRUTH[text]
    if len(text) <= _MAX_DIGITS:
        if _DECIMAL.match(text):
            return int(text)
        if _BASED.match(text):
            return int(text, 0)
        if _FLOAT.match(text):
            return _finite(float(text))
    if _NO_NUMBER.match(text):
        return _finite(math.inf)
    return text


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise BrokenFrontMatter("its front matter has a number that JSON has not")
    return number


def is_same_json(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: true is no number, 1.0 is 1, and a null member is an absent one."""
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("dict[str, Any]", one), cast("dict[str, Any]", other)
        return all(is_same_json(first.get(key), second.get(key)) for key in {*first, *second})
    if isinstance(one, list) and isinstance(other, list):
        listed, others = cast("list[Any]", one), cast("list[Any]", other)
        return len(listed) == len(others) and all(map(is_same_json, listed, others))
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other
