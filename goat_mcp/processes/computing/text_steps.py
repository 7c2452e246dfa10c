"""The operations of `text-transform` as they were asked for, checked: all that is wrong with all of them at once.

What they do is in `text_work`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, cast

from goat_mcp.core.coercion import Kind, Problem, coerced, shown_value
from goat_mcp.core.suggestions import did_you_mean

MAX_STEPS = 100
HASHES = ("md5", "sha1", "sha256", "sha384", "sha512", "sha3_256", "blake2b")
CASES = ("upper", "lower", "title", "capitalize", "camel", "pascal", "snake", "kebab")
_FLAGS: Mapping[str, re.RegexFlag] = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}

Shape = Literal["text", "list"]


@dataclass(frozen=True)
class _Field:
    kind: Kind = "text"
    required: bool = False
    choices: Sequence[str] = ()
    least: int | None = None


@dataclass(frozen=True)
class _Operation:
    """`takes` one shape only, or both; `gives` another one than it took."""

    fields: Mapping[str, _Field] = field(default_factory=dict[str, _Field])
    takes: Shape | None = None
    gives: Shape | None = None


_IGNORE_CASE = _Field("boolean")
_CODING = {"mode": _Field(required=True, choices=("encode", "decode"))}
OPERATIONS: Mapping[str, _Operation] = {
    "trim": _Operation({"side": _Field(choices=("both", "start", "end")), "characters": _Field()}),
    "case": _Operation({"to": _Field(required=True, choices=CASES)}),
    "replace": _Operation(
        {"old": _Field(required=True), "new": _Field(required=True), "count": _Field("integer", least=1)}
    ),
    "regex": _Operation({"pattern": _Field(required=True), "replacement": _Field(), "flags": _Field()}),
    "split": _Operation({"separator": _Field(), "limit": _Field("integer", least=1)}, takes="text", gives="list"),
    "join": _Operation({"separator": _Field()}, takes="list", gives="text"),
    "sort": _Operation(
        {
            "order": _Field(choices=("ascending", "descending")),
            "by": _Field(choices=("text", "number", "length")),
            "ignore_case": _IGNORE_CASE,
        }
    ),
    "unique": _Operation({"ignore_case": _IGNORE_CASE}),
    "slice": _Operation({"start": _Field("integer"), "end": _Field("integer")}),
    "base64": _Operation({**_CODING, "url_safe": _Field("boolean")}),
    "url": _Operation({**_CODING, "plus": _Field("boolean")}),
    "hash": _Operation({"algorithm": _Field(choices=HASHES)}),
}


@dataclass(frozen=True)
class Step:
    """One operation, ready to be done. `pattern` is that of `regex`."""

    op: str
    values: Mapping[str, Any]
    pattern: re.Pattern[str] | None = None

    def get(self, name: str, default: Any) -> Any:
        return self.values.get(name, default)


def read_steps(operations: Sequence[Any]) -> tuple[Sequence[Step], Sequence[Problem]]:
    """The steps, and what is wrong with them: then they are not all there."""
    if len(operations) > MAX_STEPS:
        return (), [("operations", f"are {len(operations)}; {MAX_STEPS} are the most")]
    problems: list[Problem] = []
    steps: list[Step] = []
    shape: Shape | None = "text"
    for index, asked in enumerate(operations):
        reading = _Reading(f"operations.{index}", problems)
        step = reading.step(asked)
        if step is None:
            shape = None if reading.operation is None else reading.operation.gives or shape
            continue
        steps.append(step)
        shape = reading.shape_after(step, shape)
    return steps, problems


class _Reading:
    """One operation being read."""

    def __init__(self, place: str, problems: list[Problem]) -> None:
        self._place = place
        self._problems = problems
        self.operation: _Operation | None = None

    def step(self, asked: Any) -> Step | None:
        if not isinstance(asked, Mapping):
            self._fail("", f"wants an object such as {{op: trim}}; got {shown_value(asked)}")
            return None
        given = dict(cast("Mapping[str, Any]", asked))
        op = given.pop("op", None)
        if not isinstance(op, str) or op not in OPERATIONS:
            self._fail("op", _no_operation(op))
            return None
        self.operation = OPERATIONS[op]
        before = len(self._problems)
        values = dict(self._values(op, self.operation.fields, given))
        for name, wanted in self.operation.fields.items():
            if wanted.required and name not in given:
                choices = f", one of {', '.join(wanted.choices)}" if wanted.choices else ""
                self._fail(name, f"is required by {op}{choices}")
        pattern = self._pattern(values) if op == "regex" and "pattern" in values else None
        if op == "replace" and values.get("old") == "":
            self._fail("old", "is empty: nothing can be found by it")
        if op == "split" and values.get("separator") == "" and "limit" in values:
            self._fail("limit", "has no meaning where every character is split off")
        return Step(op, values, pattern) if len(self._problems) == before else None

    def shape_after(self, step: Step, before: Shape | None) -> Shape | None:
        """What the step leaves, a text or a list of texts; None if that is not known."""
        operation = OPERATIONS[step.op]
        finds = step.op == "regex" and "replacement" not in step.values
        takes = "text" if finds else operation.takes
        if takes and before and takes != before:
            comes = "a list of texts comes" if before == "list" else "one text comes"
            remedy = "join first" if takes == "text" else "split first"
            self._fail("", f"{step.op} wants {'one text' if takes == 'text' else 'a list'}, but {comes} here; {remedy}")
        return "list" if finds else operation.gives or before

    def _values(self, op: str, fields: Mapping[str, _Field], given: Mapping[str, Any]) -> Sequence[tuple[str, Any]]:
        read: list[tuple[str, Any]] = []
        for name, raw in given.items():
            wanted = fields.get(name)
            if wanted is None:
                self._fail(name, _unknown_field(op, name, fields))
                continue
            if raw is None and not wanted.required:
                continue
            value = coerced(wanted.kind, raw)
            if wrong := _why_wrong(wanted, value):
                self._fail(name, f"wants {wrong}; got {shown_value(raw)}")
            else:
                read.append((name, value))
        return read

    def _pattern(self, values: Mapping[str, Any]) -> re.Pattern[str] | None:
        flags = re.RegexFlag(0)
        for letter in values.get("flags", ""):
            if letter not in _FLAGS:
                self._fail("flags", f"has {letter!r:.20}; there are {', '.join(_FLAGS)}")
                return None
            flags |= _FLAGS[letter]
        try:
            pattern = re.compile(values["pattern"], flags)
        except (re.error, OverflowError, RecursionError, ValueError) as problem:
            at = getattr(problem, "pos", None)
            where = "" if at is None else f", at character {at + 1}"
            self._fail("pattern", f"is no regular expression: {getattr(problem, 'msg', problem)}{where}")
            return None
        if "replacement" in values:
            try:
                pattern.sub(values["replacement"], "")  # reads the template, whether anything is found or not
            except (re.error, IndexError) as problem:
                self._fail("replacement", f"{problem}; write \\1 or \\g<name> for a group, \\\\ for a backslash")
        return pattern

    def _fail(self, name: str, what: str) -> None:
        self._problems.append((f"{self._place}.{name[:40]}" if name else self._place, what))


def _why_wrong(wanted: _Field, value: Any) -> str:
    """What is wanted, where it is not what came."""
    if wanted.kind == "text" and not isinstance(value, str):
        return f"one of {', '.join(wanted.choices)}" if wanted.choices else "a text"
    if wanted.kind == "boolean" and not isinstance(value, bool):
        return "true or false"
    if wanted.kind == "integer" and (not isinstance(value, int) or isinstance(value, bool)):
        return "a whole number"
    if wanted.choices and value not in wanted.choices:
        return f"one of {', '.join(wanted.choices)}"
    if wanted.least is not None and int(value) < wanted.least:
        return f"at least {wanted.least}"
    return ""


def _no_operation(op: Any) -> str:
    names = ", ".join(OPERATIONS)
    if op is None:
        return f"is required, one of {names}"
    near = did_you_mean(op, OPERATIONS, most=1) if isinstance(op, str) else ""
    return f"wants one of {names}; got {shown_value(op)}" + (f"; {near}" if near else "")


def _unknown_field(op: str, name: str, fields: Mapping[str, _Field]) -> str:
    known = did_you_mean(name, fields, most=1, cutoff=0.5) or f"{op} knows {', '.join(fields)}"
    return f"unknown field; {known}"
