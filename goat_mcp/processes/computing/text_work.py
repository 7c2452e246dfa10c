"""What the operations of `text-transform` do, in a worker's process. Whether they may be done is told by `text_steps`.

In: `operations`, and the text. Out: `is_list`, and the text or a JSON list of texts; or `problems`.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import re
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from goat_mcp.processes.computing.text_steps import Step, read_steps
from goat_mcp.processes.computing.worker_main import MAX_BYTES, Refused, serve

Value = str | list[str]
_MAX_ITEMS = 1_000_000
_NUMBER = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_WORDS = re.compile(r"[^\W_]+")
_TITLE_WORDS = re.compile(r"[^\W_]+(?:['\u2019\u0300-\u036f]+[^\W_]+)*")
_HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def main() -> None:
    serve(answer)


def answer(head: Mapping[str, Any], body: bytes) -> bytes:
    value = transform(body.decode("utf-8"), head["operations"])
    # As JSON either way, which tells a list from a text.
    return json.dumps(value, ensure_ascii=False).encode()


def transform(text: str, operations: Sequence[Any]) -> Value:
    """The text after all operations. Raises `Refused` with `problems`: of the request, or of the first step that
    cannot be done with what it gets."""
    steps, problems = read_steps(operations)
    if problems:
        raise Refused(problems=problems)
    value: Value = text
    for index, step in enumerate(steps):
        try:
            value = _OPERATIONS[step.op](value, step)
            _check_size(value)
        except _Impossible as problem:
            raise Refused(problems=[(f"operations.{index}", f"{step.op}: {problem}")]) from None
    return value


class _Impossible(Exception):
    """The operation cannot be done with this text."""


def _check_size(value: Value) -> None:
    size = len(value) if isinstance(value, str) else sum(map(len, value))
    if size > MAX_BYTES or (isinstance(value, list) and len(value) > _MAX_ITEMS):
        raise _Impossible(f"gives more than {MAX_BYTES:,} characters or {_MAX_ITEMS:,} items")


def _each(change: Callable[[str, Step], str]) -> Callable[[Value, Step], Value]:
    """The same for one text and for each of a list."""

    def on_all(value: Value, step: Step) -> Value:
        return change(value, step) if isinstance(value, str) else [change(item, step) for item in value]

    return on_all


def _of_lines(change: Callable[[list[str], Step], list[str]]) -> Callable[[Value, Step], Value]:
    """The same for a list and for the lines of a text, whose last line end stays where it is."""

    def on_lines(value: Value, step: Step) -> Value:
        if isinstance(value, list):
            return change(value, step)
        line_end = "\r\n" if "\r\n" in value else "\n"
        body, end = (value[: -len(line_end)], line_end) if value.endswith(line_end) else (value, "")
        return line_end.join(change(body.split(line_end), step)) + end

    return on_lines


def _trim(text: str, step: Step) -> str:
    characters = step.get("characters", None)
    side = step.get("side", "both")
    if side == "start":
        return text.lstrip(characters)
    return text.rstrip(characters) if side == "end" else text.strip(characters)


def _case(text: str, step: Step) -> str:
    to = step.values["to"]
    if to in ("upper", "lower", "title", "capitalize"):
        return {"upper": str.upper, "lower": str.lower, "title": _title, "capitalize": str.capitalize}[to](text)
    words = [word for part in _WORDS.findall(text) for word in _HUMPS.split(part)]
    if to in ("snake", "kebab"):
        return ("_" if to == "snake" else "-").join(word.lower() for word in words)
    humps = [word[:1].upper() + word[1:].lower() for word in words]
    if to == "camel" and humps:
        humps[0] = humps[0].lower()
    return "".join(humps)


def _title(text: str) -> str:
    """Unlike `str.title`, with an apostrophe as part of its word, and no capital after a digit: It's, 3rd."""
    return _TITLE_WORDS.sub(lambda word: word[0][0].title() + word[0][1:].lower(), text)


def _replace(text: str, step: Step) -> str:
    old, new, count = step.values["old"], step.values["new"], step.get("count", -1)
    found = text.count(old) if count < 0 else min(count, text.count(old))
    if len(text) + found * (len(new) - len(old)) > MAX_BYTES:
        raise _Impossible(f"gives more than {MAX_BYTES:,} characters")
    return text.replace(old, new, count)


def _regex(value: Value, step: Step) -> Value:
    assert step.pattern is not None
    if "replacement" in step.values:
        pattern = step.pattern
        return _each(lambda text, step: pattern.sub(step.values["replacement"], text))(value, step)
    assert isinstance(value, str)
    group = 1 if step.pattern.groups == 1 else 0  # of several the first says as little as any other
    return [match[group] or "" for match in step.pattern.finditer(value)]


def _split(value: Value, step: Step) -> Value:
    assert isinstance(value, str)
    separator = step.get("separator", None)
    limit = step.get("limit", 0)
    if separator is None:
        return [value] if limit == 1 else re.split(r"\r\n|\n|\r", value, maxsplit=max(0, limit - 1))
    if separator == "":
        return list(value)
    return value.split(separator, limit - 1)


def _join(value: Value, step: Step) -> Value:
    separator = step.get("separator", "\n")
    if len(separator) * len(value) + sum(map(len, value)) > MAX_BYTES:
        raise _Impossible(f"gives more than {MAX_BYTES:,} characters")
    return separator.join(value)


def _sort(items: list[str], step: Step) -> list[str]:
    fold = str.casefold if step.get("ignore_case", False) else str
    by = step.get("by", "text")

    def key(item: str) -> Any:
        if by == "length":
            return len(item)
        if by == "number":
            found = _NUMBER.match(item)
            return (found is None, float(found[0]) if found else 0.0, fold(item))  # what has no number comes last
        return fold(item)

    return sorted(items, key=key, reverse=step.get("order", "ascending") == "descending")


def _unique(items: list[str], step: Step) -> list[str]:
    """The first of those that are alike."""
    fold = str.casefold if step.get("ignore_case", False) else str
    first: dict[str, str] = {}
    for item in items:
        first.setdefault(fold(item), item)
    return list(first.values())


def _slice(value: Value, step: Step) -> Value:
    return value[step.get("start", None) : step.get("end", None)]


def _base64(text: str, step: Step) -> str:
    if step.values["mode"] == "encode":
        encode = base64.urlsafe_b64encode if step.get("url_safe", False) else base64.b64encode
        return encode(text.encode()).decode("ascii")
    plain = re.sub(r"\s+", "", text).rstrip("=").translate({ord("-"): "+", ord("_"): "/"})
    try:
        data = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
        return data.decode()
    except UnicodeDecodeError:
        raise _Impossible("what is encoded is no UTF-8 text") from None
    except (binascii.Error, ValueError) as problem:
        raise _Impossible(f"this is no base64: {problem}") from None


def _url(text: str, step: Step) -> str:
    plus = step.get("plus", False)
    if step.values["mode"] == "encode":
        return urllib.parse.quote_plus(text, safe="") if plus else urllib.parse.quote(text, safe="")
    try:
        return (urllib.parse.unquote_plus if plus else urllib.parse.unquote)(text, errors="strict")
    except UnicodeDecodeError:
        raise _Impossible("what is encoded is no UTF-8 text") from None


def _hash(text: str, step: Step) -> str:
    return hashlib.new(step.get("algorithm", "sha256"), text.encode(), usedforsecurity=False).hexdigest()


_OPERATIONS: Mapping[str, Callable[[Value, Step], Value]] = {
    "trim": _each(_trim),
    "case": _each(_case),
    "replace": _each(_replace),
    "regex": _regex,
    "split": _split,
    "join": _join,
    "sort": _of_lines(_sort),
    "unique": _of_lines(_unique),
    "slice": _slice,
    "base64": _each(_base64),
    "url": _each(_url),
    "hash": _each(_hash),
}
