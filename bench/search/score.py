"""How good answers of a search are, and what they cost a model that reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.search.query_set import Query

DEPTHS = (1, 3, 5)
CHARS_PER_TOKEN = 4


@dataclass(frozen=True)
class Answer:
    """What one search found, best first, as labels, and the text that a model reads."""

    labels: Sequence[str]
    text: str

    @property
    def tokens(self) -> float:
        return len(self.text) / CHARS_PER_TOKEN


@dataclass(frozen=True)
class Score:
    """`recall` by depth: the share of queries with a right tool among that many first ones."""

    queries: int
    recall: Mapping[int, float]
    recall_by_kind: Mapping[str, float]
    """At the greatest depth."""
    median_tokens: float
    worst_tokens: float


def score(queries: Sequence[Query], answers: Sequence[Answer]) -> Score:
    asked = list(zip(queries, answers, strict=True))
    kinds = {query.kind: [one for one in asked if one[0].kind == query.kind] for query in queries}
    tokens = [answer.tokens for answer in answers]
    return Score(
        len(asked),
        {depth: _recall(asked, depth) for depth in DEPTHS},
        {kind: _recall(some, max(DEPTHS)) for kind, some in kinds.items()},
        median(tokens),
        max(tokens),
    )


def _recall(asked: Sequence[tuple[Query, Answer]], depth: int) -> float:
    return sum(not query.wanted.isdisjoint(answer.labels[:depth]) for query, answer in asked) / len(asked)
