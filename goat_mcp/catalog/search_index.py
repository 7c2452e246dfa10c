"""The index that search looks in: BM25F over the fields of a tool.

BM25 in our own few lines: the libraries for it (`rank-bm25`, `bm25s`) bring numpy, and weigh no fields.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, cast

from goat_mcp.catalog.filter import server_of
from goat_mcp.catalog.search_spelling import Spelling
from goat_mcp.catalog.search_words import query_words, words_of
from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX
from goat_mcp.core.spec import ToolSpec

_K1 = 1.2
"""How soon more of the same word stops counting."""


class _Field(NamedTuple):
    """What a word counts that stands in it, and how much the field's length is held against its words."""

    name: str
    weight: float
    length_matters: float


_SERVER = _Field("server", 2.0, 0.0)
_NAME = _Field("name", 4.0, 0.6)
_TITLE = _Field("title", 1.0, 0.6)
_DESCRIPTION = _Field("description", 0.7, 0.8)
_PARAMETER = _Field("parameter", 0.8, 0.6)
_PARAMETER_TEXT = _Field("parameter text", 0.3, 0.4)
_FIELDS = (_SERVER, _NAME, _TITLE, _DESCRIPTION, _PARAMETER, _PARAMETER_TEXT)
_MAX_TEXT_CHARS = 2_000
_MAX_PARAMETERS = 100
_CORRECTED = 0.8
"""What a word counts that may have been meant."""
_MOST_CORRECTED = 8
_USED = 1.2
"""What a tool's score gains if it is used often."""


class Bm25:
    """An index over documents, each the words of every field. Built once, then only read."""

    def __init__(self, documents: Sequence[Mapping[_Field, Sequence[str]]]) -> None:
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        count = len(documents)
        means = {field: sum(len(one.get(field, ())) for one in documents) / count or 1.0 for field in _FIELDS if count}
        for number, document in enumerate(documents):
            weights: dict[str, float] = defaultdict(float)
            for field, words in document.items():
                norm = 1 - field.length_matters + field.length_matters * len(words) / means[field]
                for word, times in Counter(words).items():
                    weights[word] += field.weight * times / norm
            for word, weight in weights.items():
                self._postings[word].append((number, weight / (weight + _K1)))
        self._count = count
        self.words = self._postings.keys()

    def scores(self, query: Mapping[str, float]) -> Mapping[int, float]:
        """The score of each document that has a word of the query. The query's words have weights too."""
        scores: dict[int, float] = defaultdict(float)
        for word, wanted in query.items():
            found = self._postings.get(word, ())
            rarity = math.log(1 + (self._count - len(found) + 0.5) / (len(found) + 0.5))
            for number, weight in found:
                scores[number] += wanted * rarity * weight
        return scores


class ToolIndex:
    """Over some tools, in the order they are listed. Thousands take a while to build: not on the event loop."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._specs = specs
        self._index = Bm25([_document(spec) for spec in specs])
        self._spelling = Spelling(self._index.words)

    def best(
        self, query: str, accepts: Callable[[ToolSpec], bool], limit: int, used: Collection[str] = ()
    ) -> tuple[list[ToolSpec], int]:
        """The first `limit` that `accepts` takes, and how many fit at all. Ties go by canonical name. Of tools that fit
        about as well, those come first of which `used` holds the canonical name.

        A query without words fits everything, in order.
        """
        wanted = query_words(query)
        if not wanted:
            fitting = [spec for spec in self._specs if accepts(spec)]
            return fitting[:limit], len(fitting)
        scores = self._index.scores(self._corrected(wanted))

        def place(number: int) -> tuple[float, str]:
            name = self._specs[number].rule_name
            return -round(scores[number] * (_USED if name in used else 1.0), 9), name

        in_order = sorted(scores, key=place)
        fitting = [spec for number in in_order if accepts(spec := self._specs[number])]
        return fitting[:limit], len(fitting)

    def _corrected(self, wanted: Mapping[str, float]) -> Mapping[str, float]:
        """With what a word may be meant to be that no tool has."""
        unknown = [word for word, weight in wanted.items() if weight == 1.0 and word not in self._index.words]
        near = {other: _CORRECTED for word in unknown[:_MOST_CORRECTED] for other in self._spelling.near(word)}
        return {**near, **wanted} if near else wanted


def _document(spec: ToolSpec) -> Mapping[_Field, Sequence[str]]:
    server = server_of(spec)
    name = spec.rule_name.removeprefix(f"{UPSTREAM_PREFIX}{server}{SEPARATOR}") if server else spec.rule_name
    names: list[str] = []
    texts: list[str] = []
    properties: Any = spec.input_schema.get("properties")
    if isinstance(properties, dict):
        for parameter, schema in list(cast("dict[str, Any]", properties).items())[:_MAX_PARAMETERS]:
            names += words_of(parameter[:_MAX_TEXT_CHARS])
            text: Any = cast("dict[str, Any]", schema).get("description") if isinstance(schema, dict) else None
            if isinstance(text, str):
                texts += words_of(text[:_MAX_TEXT_CHARS])
    return {
        _SERVER: words_of(server),
        _NAME: words_of(name),
        _TITLE: [] if spec.title in (spec.name, spec.rule_name) else words_of(spec.title[:_MAX_TEXT_CHARS]),
        _DESCRIPTION: words_of(spec.description[:_MAX_TEXT_CHARS]),
        _PARAMETER: names,
        _PARAMETER_TEXT: texts,
    }
