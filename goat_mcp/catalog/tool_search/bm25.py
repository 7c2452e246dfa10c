"""BM25: how well documents of weighted words fit a query. It knows nothing of tools.

Our own few lines: the libraries of this trade (`rank-bm25`, `bm25s`) bring numpy, and weigh no fields.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

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
