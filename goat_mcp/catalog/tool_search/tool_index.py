"""An index of tools: which of them a query in plain words means, best first (DEF-4)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from goat_mcp.catalog.tool_search.bm25 import Bm25
from goat_mcp.catalog.tool_search.words import words_of
from goat_mcp.core.spec import ToolSpec

_NAME, _TITLE, _DESCRIPTION, _PARAMETER, _PARAMETER_TEXT = 3.0, 1.5, 1.0, 0.6, 0.2
"""What a word counts by where it stands."""
_MAX_TEXT_CHARS = 2_000
_MAX_PARAMETERS = 100
_RELATED = 0.35
"""What a word counts that only means much the same as one of the query."""
_ALIKE: Sequence[frozenset[str]] = tuple(
    frozenset(word for name in names.split() for word in words_of(name))
    for names in (
        "create add new make open insert write",
        "delete remove drop erase trash",
        "list show get all browse",
        "find search query look lookup",
        "get read fetch view show retrieve",
        "update edit change modify set",
        "send post publish message",
        "run execute start trigger launch",
        "stop cancel abort end kill",
        "picture image screenshot photo",
        "file document",
        "folder directory",
        "repository repo project",
        "ticket issue bug task",
        "user person member people",
        "meeting event appointment",
    )
)


class ToolIndex:
    """Over some tools, in the order they are listed. Thousands take a while to build: not on the event loop."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._specs = specs
        self._index = Bm25(map(_document, specs))

    def best(self, query: str, accepts: Callable[[ToolSpec], bool], limit: int) -> tuple[list[ToolSpec], int]:
        """The first `limit` that `accepts` takes, and how many fit at all. Ties go by canonical name.

        A query without words fits everything, in order.
        """
        wanted = _query(query)
        if not wanted:
            fitting = [spec for spec in self._specs if accepts(spec)]
            return fitting[:limit], len(fitting)
        scores = self._index.scores(wanted)
        in_order = sorted(scores, key=lambda number: (-round(scores[number], 9), self._specs[number].rule_name))
        fitting = [spec for number in in_order if accepts(spec := self._specs[number])]
        return fitting[:limit], len(fitting)


def _document(spec: ToolSpec) -> Mapping[str, float]:
    weights: dict[str, float] = defaultdict(float)

    def count(text: str, weight: float) -> None:
        for word in words_of(text[:_MAX_TEXT_CHARS]):
            weights[word] += weight

    count(spec.rule_name.removeprefix("mcp__"), _NAME)
    if spec.title not in (spec.name, spec.rule_name):
        count(spec.title, _TITLE)
    count(spec.description, _DESCRIPTION)
    properties: Any = spec.input_schema.get("properties")
    if isinstance(properties, dict):
        for name, schema in list(cast("dict[str, Any]", properties).items())[:_MAX_PARAMETERS]:
            count(name, _PARAMETER)
            text: Any = cast("dict[str, Any]", schema).get("description") if isinstance(schema, dict) else None
            if isinstance(text, str):
                count(text, _PARAMETER_TEXT)
    return weights


def _query(text: str) -> Mapping[str, float]:
    """The words of a query, each once, and at less weight what means much the same."""
    words = dict.fromkeys(words_of(text), 1.0)
    related = {other: _RELATED for word in words for alike in _ALIKE if word in alike for other in alike}
    return {**related, **words}
