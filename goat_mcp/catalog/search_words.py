"""The words that search compares: of tools, and of what is asked for. An index over them is in `search_index.py`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_RUNS = re.compile(r"[^\W\d_]+|\d+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_FIRST_IDEOGRAPH = "\u2e80"
_SAYS_NOTHING = """
a an the of to in on for from with by at as and or is are be it its this that these those i me my we our you your can do
how what which please want need some any all into if has have who was were will there their them tool use using used s t
"""
_STOP = frozenset(_SAYS_NOTHING.split())
_MIN_STEM = 3
_MIN_DOER = 7
"""Letters of a word whose `er` is an ending: `reviewer` and `watcher`, but not `order`."""


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
    if word.endswith("er") and len(word) >= _MIN_DOER:
        return word[:-2]
    return word[:-1] if word.endswith("e") and len(word) > _MIN_STEM else word


_RELATED = 0.4
"""What a word counts that only means much the same as one of the query."""


def _groups(*groups: str) -> Sequence[frozenset[str]]:
    return tuple(frozenset(word for name in names.split() for word in words_of(name)) for names in groups)


_READING = _groups(
    "list show get all browse",
    "find search query look lookup",
    "get read fetch view show retrieve",
)
_CHANGING = _groups(
    "create add new make open insert write",
    "delete remove drop erase trash",
    "update edit change modify set",
    "send post publish message write",
    "run execute start trigger launch",
    "stop cancel abort end kill",
    "turn convert transform",
    "approve review",
)
_THINGS = _groups(
    "picture image screenshot photo",
    "file document",
    "doc docx document",
    "folder directory",
    "repository repo project",
    "ticket issue bug task",
    "user person member people",
    "meeting event appointment",
    "release version",
    "row record",
    "column field",
    "history log",
    "supplier customer contact",
    "room channel space",
)
_ALIKE = (*_READING, *_CHANGING, *_THINGS)


def query_words(text: str) -> Mapping[str, float]:
    """The words of a query, each once, and at less weight what means much the same."""
    words = dict.fromkeys(words_of(text), 1.0)
    related = {other: _RELATED for word in words for alike in _ALIKE if word in alike for other in alike}
    return {**related, **words}
