"""Search over the tools of one catalog that are too many to be listed (DEF-4).

BM25 in our own few lines: the libraries for it (`rank-bm25`, `bm25s`) bring numpy, and weigh no fields.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread

from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.filter import server_of
from goat_mcp.core.context import ToolContext
from goat_mcp.core.spec import ToolSpec

_BUILT_AT_ONCE = 100
"""Tools whose index is made in a moment. More of them are taken off the event loop."""


@dataclass(frozen=True)
class FoundTools:
    """The best of `total` that fit, of `searched` that the caller may see. `servers` are those they are of."""

    tools: Sequence[ToolSpec]
    total: int
    searched: int
    servers: Sequence[str]


class CatalogSearch:
    """What is hidden from a client, or denied to it as a whole, it does not find either (PRF-2)."""

    def __init__(self, catalog: Catalog, is_denied: Callable[[ToolSpec], bool]) -> None:
        self._catalog = catalog
        self._is_denied = is_denied
        self._building = anyio.Lock()
        self._built: WeakKeyDictionary[Catalog, tuple[int, ToolIndex]] = WeakKeyDictionary()

    async def find(self, query: str, ctx: ToolContext, *, limit: int, server: str = "") -> FoundTools:
        """The tools that `query` means, of one server if it is named."""
        catalog = self._catalog.of(ctx.rights)
        open_to_caller = [spec for spec in _searched(catalog) if self.shows(spec, ctx)]
        names = {spec.name for spec in open_to_caller if not server or server_of(spec) == server}
        index = await self._index(catalog)
        tools, total = index.best(query, lambda spec: spec.name in names, limit)
        servers = tuple(dict.fromkeys(map(server_of, open_to_caller)))
        return FoundTools(tools, total, len(names), servers)

    def shows(self, spec: ToolSpec, ctx: ToolContext) -> bool:
        """Whether this caller may know more of a tool of the catalog than its name."""
        return ctx.rights.permits(spec.rule_name, spec.name) and not self._is_denied(spec)

    async def _index(self, catalog: Catalog) -> ToolIndex:
        async with self._building:  # those who ask meanwhile want the same one
            specs, generation = _searched(catalog), catalog.generation
            known = self._built.get(catalog)
            if known is None or known[0] != generation:
                if len(specs) <= _BUILT_AT_ONCE:
                    index = ToolIndex(specs)
                else:
                    index = await anyio.to_thread.run_sync(ToolIndex, specs)
                known = self._built[catalog] = (generation, index)
            return known[1]


def _searched(catalog: Catalog) -> Sequence[ToolSpec]:
    return [tool.spec for tool in catalog.searched()]


_RUNS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_FIRST_IDEOGRAPH = "\u2e80"
_STOP = frozenset(
    {
        *("a", "an", "the", "of", "to", "in", "on", "for", "from", "with", "by", "at", "as", "and", "or", "is", "are"),
        *(
            "be",
            "it",
            "its",
            "this",
            "that",
            "these",
            "those",
            "i",
            "me",
            "my",
            "we",
            "our",
            "you",
            "your",
            "can",
            "do",
        ),
        *("how", "what", "which", "please", "want", "need", "some", "any", "all", "into", "if", "has", "have", "who"),
        *("was", "were", "will", "there", "their", "them", "tool", "use", "using", "used", "s", "t"),
    }
)
_MIN_STEM = 3


def words_of(text: str) -> list[str]:
    """Stems of the words in order, without those that say nothing."""
    parts = [part for run in _RUNS.findall(text) for part in _split(run)]
    return [stem(word) for part in parts if (word := part.lower()) not in _STOP]


def _split(run: str) -> list[str]:
    if run.isascii():
        return _CAMEL.findall(run) or [run]
    # Scripts without spaces between words: each sign is one.
    return list(run) if run[0] >= _FIRST_IDEOGRAPH else [run]


def stem(word: str) -> str:
    """A word without its commonest endings: enough that `issues`, `creating`, `closed` meet `issue`, `create`, `close`.

    Not a linguist's stem: both sides of a comparison go through here, so it need only be the same for both.
    """
    if len(word) <= _MIN_STEM or not word.isascii():
        return word
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith(("sses", "shes", "ches", "xes", "zes")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= _MIN_STEM:
            word = word[: -len(ending)]
            if len(word) > _MIN_STEM and word[-1] == word[-2] and word[-1] not in "lsz":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > _MIN_STEM else word


_K1 = 1.2
"""How soon more of the same word stops counting."""
_B = 0.6
"""How much a long document is held against it."""


class Bm25:
    """An index over documents, each a weight for every word in it. Built once, then only read."""

    def __init__(self, documents: Iterable[Mapping[str, float]]) -> None:
        self._postings: dict[str, list[tuple[int, float]]] = defaultdict(list)
        lengths: list[float] = []
        for number, document in enumerate(documents):
            lengths.append(sum(document.values()))
            for word, weight in document.items():
                self._postings[word].append((number, weight))
        mean = sum(lengths) / len(lengths) if lengths and any(lengths) else 1.0
        self._norms = [_K1 * (1 - _B + _B * length / mean) for length in lengths]
        self._count = len(lengths)

    def scores(self, query: Mapping[str, float]) -> Mapping[int, float]:
        """The score of each document that has a word of the query. The query's words have weights too."""
        scores: dict[int, float] = defaultdict(float)
        for word, wanted in query.items():
            found = self._postings.get(word, ())
            rarity = math.log(1 + (self._count - len(found) + 0.5) / (len(found) + 0.5))
            for number, weight in found:
                scores[number] += wanted * rarity * weight * (_K1 + 1) / (weight + self._norms[number])
        return scores


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
