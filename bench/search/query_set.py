"""The labelled queries: in each line the kind of query, its text, and every tool that does what it asks for.

Kinds: `plain`; `server`, which names the product; `typo`. Half of them are for development, the other half is held out:
nothing in the search is chosen by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Half = Literal["development", "held out"]
HALVES: tuple[Half, ...] = get_args(Half)
KINDS = ("plain", "server", "typo")
_FOLDER = Path(__file__).parent / "queries"


@dataclass(frozen=True)
class Query:
    """`wanted`: labels (`server/tool`) of the tools that are right; one of them is enough."""

    kind: str
    text: str
    wanted: frozenset[str]


def queries(half: Half) -> Sequence[Query]:
    text = (_FOLDER / f"{half.replace(' ', '_')}.tsv").read_text(encoding="utf-8")
    return parsed(text)


def parsed(text: str) -> Sequence[Query]:
    """Raises `ValueError` for a line that is not a kind, a text and labels, separated by tabs."""
    found: list[Query] = []
    for number, line in enumerate(text.splitlines(), 1):
        kind, *rest = line.split("\t")
        if kind not in KINDS or len(rest) != 2 or not all(rest):
            raise ValueError(f"line {number}: not a kind, a query and its tools, with tabs between: {line!r}")
        found.append(Query(kind, rest[0], frozenset(rest[1].split())))
    return found
