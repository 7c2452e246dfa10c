"""YAML as plain values with their lines. Strict: keys are texts and unique, and all values are of JSON's kinds.

The C reader is used if it is installed: with it, hundreds of files take a tenth of a second.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import yaml

Level = Literal["error", "warning", "note"]
"""An `error` leaves the document out. A `warning` is about one that is used, a `note` about what may well be meant."""


@dataclass(frozen=True, order=True)
class ManifestProblem:
    """One fault of one document. `line` is 0 for what is about a directory, or the whole of a file."""

    file: Path
    line: int
    what: str
    remedy: str
    level: Level = "error"

    @property
    def is_fatal(self) -> bool:
        """Whether the document is left out."""
        return self.level == "error"

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}" if self.line else str(self.file)

    def __str__(self) -> str:
        return f"{self.location}: {self.what}; {self.remedy}"

    def as_compiler_line(self) -> str:
        """With its level, as compilers write it: editors and CI find file and line by that."""
        return f"{self.location}: {self.level}: {self.what}; {self.remedy}"

    def as_json(self) -> dict[str, str | int | bool]:
        return {
            "file": str(self.file),
            "line": self.line,
            "level": self.level,
            "what": self.what,
            "remedy": self.remedy,
            "is_fatal": self.is_fatal,
        }


class BrokenManifest(Exception):
    """A document, or a file of them, that cannot be used."""

    def __init__(self, *problems: ManifestProblem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


MAX_BYTES = 256 * 1024
MAX_VALUES = 10_000
MAX_DEPTH = 40
_YAML: Any = yaml  # an untyped library
_LOADER = getattr(_YAML, "CSafeLoader", _YAML.SafeLoader)
_CONSTRUCTOR = _YAML.constructor.SafeConstructor()
_TAG = "tag:yaml.org,2002:"
_COLLECTIONS = (f"{_TAG}map", f"{_TAG}seq")
_WHAT_JSON_HAS = {"int": "whole number that JSON has", "float": "number that JSON has"}
_LINE_END = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""As YAML counts lines."""
_MAY_BE_DEEP = 1_000
"""So many brackets, or indicators that a line begins with, can nest so deep that the reader, which calls itself for
each level, would end the process. Nearly no manifest has them, and looking closer takes as long as reading."""
_DEEP_LINE = re.compile(rf"^[ ?:-]{{{_MAY_BE_DEEP}}}", re.MULTILINE)
_MAX_NUMBER_BITS = 1_000
"""As far as JSON's readers go."""
_KINDS = {str: "text", bool: "boolean", int: "number", float: "number"}
_SHOWN_CHARS = 60

ValuePath = tuple[str | int, ...]
"""Where a value stands: keys and indexes from the document's root."""


@dataclass(frozen=True)
class YamlDocument:
    """One YAML document: its value, and the line (from 1) of each value in it. `folder` holds the files that it names:
    the folder of `file`, or of a copy. `literals` are the values that YAML does not take for text, as written: `on`,
    `12:30`."""

    file: Path
    tree: Any
    lines: dict[ValuePath, int]
    folder: Path
    literals: dict[ValuePath, str] = field(default_factory=dict[ValuePath, str])

    def line_of(self, path: ValuePath) -> int:
        """The line of a value, or of the nearest one around it that exists."""
        while path not in self.lines:
            path = path[:-1]
        return self.lines[path]

    def describe(self, path: ValuePath, value: Any) -> str:
        """The value there in words that a person recognises."""
        if isinstance(value, dict | list):
            return "a list" if isinstance(value, list) else "a mapping"
        if value is None:
            return "nothing"
        return f"the {_KINDS[type(value)]} {self.literals.get(path, str(value))!r:.{_SHOWN_CHARS}}"

    def quoting_hint(self, path: ValuePath) -> str:
        """What to write there to mean a text; empty if it is one, or a collection."""
        word = self.literals.get(path, "")
        return f"quote it: '{word:.{_SHOWN_CHARS}}'" if word else ""

    def problem(self, path: ValuePath, what: str, remedy: str, *, level: Level = "error") -> ManifestProblem:
        return ManifestProblem(self.file, self.line_of(path), what, remedy, level)


def read_documents(file: Path, data: bytes, folder: Path | None = None) -> Sequence[YamlDocument]:
    """All documents of a file that are not empty. Raises `BrokenManifest` if it is not YAML as above."""
    if len(data) > MAX_BYTES:
        raise _broken(file, 1, f"the file is longer than {MAX_BYTES} bytes", "split it")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as wrong:
        line = data.count(b"\n", 0, wrong.start) + 1
        raise _broken(file, line, "the file is not UTF-8 text", "save it as UTF-8") from None
    try:
        _check_depth(file, text)
        nodes: list[yaml.Node] = [node for node in _YAML.compose_all(text, Loader=_LOADER) if node is not None]
    except yaml.YAMLError as wrong:
        mark = getattr(wrong, "problem_mark", None) or getattr(wrong, "context_mark", None)
        what = str(getattr(wrong, "problem", None) or wrong).splitlines()[0]
        # Where the end comes too soon, the parser names the line after the last.
        line = min(mark.line, len(_LINE_END.findall(text))) + 1 if mark else _line_of_character(text, wrong)
        raise _broken(file, line, f"not YAML: {what}", "fix the indentation or quote the value") from None
    except (ValueError, RecursionError) as wrong:
        raise _broken(file, 1, f"not YAML: {type(wrong).__name__}", "write it simpler") from None
    return [_document(file, node, folder or file.parent) for node in nodes]


def _check_depth(file: Path, text: str) -> None:
    """Raises `BrokenManifest`, and `yaml.YAMLError` for what is none. For events the reader does not call itself."""
    if text.count("[") + text.count("{") < _MAY_BE_DEEP and _DEEP_LINE.search(text) is None:
        return
    depth = 0
    for event in _YAML.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH + 1:
            raise _too_much(file, event.start_mark.line + 1)


def _too_much(file: Path, line: int) -> BrokenManifest:
    return _broken(file, line, "holds too many values", f"at most {MAX_VALUES}, {MAX_DEPTH} deep")


def _line_of_character(text: str, wrong: yaml.YAMLError) -> int:
    position = getattr(wrong, "position", 0) or 0
    return text.count("\n", 0, position) + 1


def _broken(file: Path, line: int, what: str, remedy: str) -> BrokenManifest:
    return BrokenManifest(ManifestProblem(file, line, what, remedy))


def _document(file: Path, root: yaml.Node, folder: Path) -> YamlDocument:
    reader = _Reader(file)
    return YamlDocument(file, reader.value(root, ()), reader.lines, folder, reader.literals)


class _Reader:
    """Turns the nodes of one document into values."""

    def __init__(self, file: Path) -> None:
        self.lines: dict[ValuePath, int] = {}
        self.literals: dict[ValuePath, str] = {}
        self._file = file

    def value(self, node: yaml.Node, path: ValuePath) -> Any:
        line = node.start_mark.line + 1
        self.lines[path] = line
        # Aliases count each time: few lines can stand for more values than there is memory for.
        if len(self.lines) > MAX_VALUES or len(path) > MAX_DEPTH:
            raise _too_much(self._file, line)
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
            raise self._not_supported(node, line)
        if isinstance(node, yaml.MappingNode):
            return {key.value: self._member(key, child, path) for key, child in self._members(node)}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._scalar(node, line, path)

    def _member(self, key: yaml.Node, child: yaml.Node, path: ValuePath) -> Any:
        value = self.value(child, (*path, key.value))
        self.lines[(*path, key.value)] = key.start_mark.line + 1  # where a person looks for it
        return value

    def _members(self, node: yaml.MappingNode) -> Iterator[tuple[yaml.Node, yaml.Node]]:
        seen: set[str] = set()
        for key, child in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode) or key.tag == f"{_TAG}merge":
                raise _broken(self._file, line, "a key is not a plain text", "write it out; `<<` is not supported")
            if key.value in seen:
                raise _broken(self._file, line, f"the key {key.value!r:.80} stands twice", "take one of them away")
            seen.add(key.value)
            yield key, child

    def _scalar(self, node: yaml.Node, line: int, path: ValuePath) -> Any:
        kind = node.tag.removeprefix(_TAG)
        if kind in ("str", "timestamp", "value"):
            return node.value
        if kind not in ("int", "float", "bool", "null"):
            raise self._not_supported(node, line)
        self.literals[path] = node.value
        try:
            value = _CONSTRUCTOR.construct_object(node)
        except (ValueError, yaml.YAMLError):
            value = math.nan
        if (isinstance(value, float) and not math.isfinite(value)) or _is_huge(value):
            what = f"{node.value!r:.60} is no {_WHAT_JSON_HAS.get(kind, kind)}"
            raise _broken(self._file, line, what, "quote it to make it a text")
        return value

    def _not_supported(self, node: yaml.Node, line: int) -> BrokenManifest:
        return _broken(self._file, line, f"the tag {node.tag!r:.60} is not supported", "write a plain value")


def _is_huge(value: Any) -> bool:
    return isinstance(value, int) and value.bit_length() > _MAX_NUMBER_BITS
