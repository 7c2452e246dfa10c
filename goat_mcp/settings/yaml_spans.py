"""Where the keys, values and items of a YAML text lie in it, and what to put there instead. What it means is not
asked here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.settings.yaml_writing import flow_yaml, yaml_lines
from goat_mcp.state.trust.strict_yaml import check_keys

_YAML: Any = yaml  # an untyped library
MAX_CHARS = 1024 * 1024
_INDENT = 2
_MAX_INDENT = 8
_COLON = re.compile(r"[ \t]*:")
_COMMENT_LINE = re.compile(r"([ \t]*)#[^\n]*")
_BLANK_LINE = re.compile(r"[ \t]*\r?(?:\n|\Z)")

Piece = tuple[int, int, str]
"""`text[start:end]`, and what comes in its place."""


def refusal(why: str, mark: yaml.Mark | None = None) -> ToolError:
    where = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
    return ToolError(ErrorCode.CONFIG, f"{where}{why}", "Nothing was changed. Change the file by hand.")


def parsed(text: str) -> Any:
    """The plain value. Raises `ToolError(CONFIG)`."""
    return _read(text, _NamedKeys)


def _read(text: str, loader: type[yaml.SafeLoader], *, compose: bool = False) -> Any:
    if len(text) > MAX_CHARS:
        raise refusal(f"it is longer than {MAX_CHARS} characters")
    try:
        return _YAML.compose(text, loader) if compose else _YAML.load(text, loader)
    except yaml.YAMLError as problem:
        mark = getattr(problem, "problem_mark", None)
        said = [part for part in (getattr(problem, "context", None), getattr(problem, "problem", None)) if part]
        raise refusal(f"it is not valid YAML: {', '.join(said) or problem}", mark) from None
    except (ValueError, RecursionError) as problem:
        raise refusal(f"it is not valid YAML: {type(problem).__name__}") from None


class _NamedKeys(yaml.SafeLoader):
    """Keys as they are written: `on` and `1` are names, too, and what `<<` names is not merged but its value."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        check_keys(node, may_merge=True)
        loader: Any = self
        return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


class _Positions(yaml.SafeLoader):
    """An alias is a node of its own: what it stands for is at another position."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        loader: Any = self
        if not loader.check_event(yaml.AliasEvent):
            return super().compose_node(parent, index)
        event = loader.get_event()
        return yaml.ScalarNode("alias", f"*{event.anchor}", event.start_mark, event.end_mark)


class YamlSpans:
    """A text and its nodes. Methods return what to replace; all raise `ToolError(CONFIG)`."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._newline = "\r\n" if "\r\n" in text else "\n"
        self._root: Any = _read(text, _Positions, compose=True)
        self._unit, self._dash = self._indents()

    def with_value(self, path: Sequence[str], value: Any) -> list[Piece]:
        """The value that the path names is another one, or comes behind what is there."""
        node, key, in_brackets = self._root, None, False
        for depth, name in enumerate(path):
            rest = _nested(path[depth + 1 :], value)
            if _is_empty(node):
                return self._replaced(key, node, {name: rest}, in_brackets=in_brackets)
            found = self._member(node, name, path[:depth])
            in_brackets = in_brackets or node.flow_style
            if found is None:
                return self._inserted(key, node, name, rest)
            key, node = found
        return self._replaced(key, node, value, in_brackets=in_brackets)

    def without(self, path: Sequence[str]) -> list[Piece]:
        """The key is gone; a mapping that holds nothing then is `{}`."""
        chain = self._chain(path)
        (parent_key, parent, in_brackets), (key, node, _) = chain[-2:]
        if len(parent.value) == 1 and (parent_key is not None or parent.flow_style):
            return self._replaced(parent_key, parent, {}, in_brackets=in_brackets)
        if parent.flow_style:
            spans = [(key.start_mark.index, self._end(value)) for key, value in parent.value]
            return _cuts(spans, {index for index, (other, _) in enumerate(parent.value) if other is key})
        return [self._lines_of(key.start_mark, key.start_mark.column, node)]

    def without_items(self, path: Sequence[str], gone: set[int]) -> list[Piece]:
        """Some items are gone; at least one stays."""
        _, sequence, _ = self._chain(path)[-1]
        if sequence.flow_style:
            return _cuts([(item.start_mark.index, self._end(item)) for item in sequence.value], gone)
        column = sequence.start_mark.column
        return [self._lines_of(sequence.value[index].start_mark, column, sequence.value[index]) for index in gone]

    def with_items(self, path: Sequence[str], new: Sequence[Any]) -> list[Piece]:
        """New items behind those that are there."""
        key, sequence, _ = self._chain(path)[-1]
        end = self._end(sequence.value[-1])
        if sequence.flow_style:
            return [(end, end, "".join(f", {flow_yaml(item)}" for item in new))]
        at = self._tail(end, key.start_mark.column + 1)
        return [(at, at, self._newline + self._block(list(new), sequence.start_mark.column))]

    def _chain(self, path: Sequence[str]) -> list[tuple[Any, Any, bool]]:
        """Key, value, and whether that is between brackets, from the document down to what the path names."""
        chain: list[tuple[Any, Any, bool]] = [(None, self._root, False)]
        for depth, name in enumerate(path):
            _, node, in_brackets = chain[-1]
            found = self._member(node, name, path[:depth])
            if found is None:
                raise refusal(f"it has no {'.'.join(path)}")
            chain.append((*found, in_brackets or node.flow_style))
        self._check_plain(chain[-1][1])
        return chain

    def _member(self, node: Any, name: str, path: Sequence[str]) -> tuple[Any, Any] | None:
        self._check_plain(node)
        if not isinstance(node, yaml.MappingNode):
            raise refusal(f"{'.'.join(path) or 'it'} is not a mapping (`key: value`)", node.start_mark)
        return next(((key, value) for key, value in node.value if key.value == name), None)

    def _check_plain(self, node: Any) -> None:
        if node is not None and self._text[node.start_mark.index : node.start_mark.index + 1] in ("&", "*", "!"):
            raise refusal("an anchor, an alias or a tag (`&x`, `*x`, `!x`) is not edited", node.start_mark)

    def _replaced(self, key: Any, node: Any, value: Any, *, in_brackets: bool) -> list[Piece]:
        text = self._text
        self._check_plain(node)
        if node is None or (key is None and self._end(node) == node.start_mark.index):
            gap = self._newline if text and not text.endswith("\n") else ""
            return [(len(text), len(text), gap + self._block(value, 0) + self._newline)]
        start, end = node.start_mark.index, self._end(node)
        if key is None:
            return [(start, end, self._block(value, 0) if value else flow_yaml(value))]
        if in_brackets:
            return [(start, end, flow_yaml(value))]
        colon = _COLON.match(text, key.end_mark.index)
        if colon is None:
            raise refusal("a key that is written with `?` stands here", key.start_mark)
        at = colon.end()
        was_block = isinstance(node, yaml.CollectionNode) and not node.flow_style
        if not isinstance(value, dict | list) or not value:
            inline = f" {flow_yaml(value, plain=True)}"
            if was_block:
                return [(at, at, inline), (self._line_end(at), self._tail(end, key.start_mark.column + 1), "")]
            return [(at, max(at, end), inline)]
        block = self._block(value, key.start_mark.column + (self._dash if isinstance(value, list) else self._unit))
        if was_block:
            return [(self._line_start(start), end, block)]
        behind = self._line_end(end)
        return [(at, max(at, end), ""), (behind, behind, self._newline + block)]

    def _inserted(self, key: Any, node: Any, name: str, value: Any) -> list[Piece]:
        end = self._end(node.value[-1][1])
        if node.flow_style:
            return [(end, end, f", {flow_yaml({name: value})[1:-1]}")]
        at = self._tail(end, 0 if key is None else key.start_mark.column + 1)
        return [(at, at, self._newline + self._block({name: value}, node.value[0][0].start_mark.column))]

    def _lines_of(self, mark: yaml.Mark, column: int, node: Any) -> Piece:
        """The lines of a key or an item, with the comments that are its own."""
        text = self._text
        start = self._line_start(mark.index)
        if text[start : mark.index].strip(" \t-"):
            raise refusal("something else begins in the same line", mark)
        end = self._tail(max(self._end(node), mark.index), column + 1) + 1
        above = start
        while above and (found := _COMMENT_LINE.match(text, line := self._line_start(above - 1))):
            if len(found[1]) != column:
                break
            above = line
        if above:  # else it is the comment at the top of the file
            start = above
        if end > len(text):  # the last line has no end: the one before it loses its
            return len(text[:start].removesuffix("\n").removesuffix("\r")), len(text), ""
        end = text.index("\n", end - 1) + 1
        if start == 0 or not text[self._line_start(start - 1) : start].strip():
            while end < len(text) and (blank := _BLANK_LINE.match(text, end)):
                end = blank.end()
        return start, end, ""

    def _tail(self, at: int, column: int) -> int:
        """The end of the line, and of the comments below it that are indented as far as `column` at least."""
        at = self._line_end(at)
        while (below := self._text.find("\n", at)) >= 0:
            found = _COMMENT_LINE.match(self._text, below + 1)
            if found is None or len(found[1]) < column:
                break
            at = self._line_end(below + 1)
        return at

    def _end(self, node: Any) -> int:
        """Behind its last character; the parser counts the blanks and comments behind a collection to it."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style:
            last = node.value[-1]
            return self._end(last[1] if isinstance(last, tuple) else last)
        if getattr(node, "style", None) in ("|", ">"):
            start = node.start_mark.index
            return self._line_end(start + len(self._text[start : node.end_mark.index].rstrip()))
        return node.end_mark.index

    def _line_start(self, at: int) -> int:
        return self._text.rfind("\n", 0, at) + 1

    def _line_end(self, at: int) -> int:
        found = self._text.find("\n", at)
        end = len(self._text) if found < 0 else found
        return end - 1 if self._text[at:end].endswith("\r") else end

    def _block(self, value: Any, indent: int) -> str:
        return self._newline.join(yaml_lines(value, indent, unit=self._unit, dash=self._dash))

    def _indents(self) -> tuple[int, int]:
        """How far the first mapping and the first list that are below a key are indented."""
        unit: int | None = None
        dash: int | None = None
        left = [self._root]
        while left and (unit is None or dash is None):
            node = left.pop(0)
            if not isinstance(node, yaml.CollectionNode) or node.flow_style:
                continue
            if isinstance(node, yaml.SequenceNode):
                left += node.value
                continue
            for key, value in node.value:
                left.append(value)
                if not isinstance(value, yaml.CollectionNode) or value.flow_style:
                    continue
                further = value.start_mark.column - key.start_mark.column
                if isinstance(value, yaml.SequenceNode) and dash is None and 0 <= further <= _MAX_INDENT:
                    dash = further
                elif isinstance(value, yaml.MappingNode) and unit is None and 0 < further <= _MAX_INDENT:
                    unit = further
        unit = unit or dash or _INDENT
        return unit, unit if dash is None else dash


def _is_empty(node: Any) -> bool:
    if isinstance(node, yaml.ScalarNode):
        return node.tag == "tag:yaml.org,2002:null"
    return node is None or (isinstance(node, yaml.MappingNode) and not node.value)


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _cuts(spans: Sequence[tuple[int, int]], gone: set[int]) -> list[Piece]:
    """Items between brackets are gone, each with one comma."""
    first = min(index for index in range(len(spans)) if index not in gone)
    return [
        (spans[index - 1][1], spans[index][1], "") if index > first else (spans[index][0], spans[index + 1][0], "")
        for index in sorted(gone)
    ]
