"""What a word that no tool has was probably meant to be: its nearest neighbours among the words there are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

_MIN_CHARS = 4
"""Shorter words are too near to each other. One of three letters may have lost its fourth."""
_MAX_CHARS = 30
_LONG_CHARS = 8
"""From here on two slips are likely enough."""
_MOST_NEAR = 3


class Spelling:
    """Neighbours start with the same letter: few slips are in the first one, and it leaves few words to compare."""

    def __init__(self, words: Iterable[str]) -> None:
        self._by_first: dict[str, list[tuple[str, int]]] = defaultdict(list)
        for word in words:
            if _MIN_CHARS <= len(word) <= _MAX_CHARS and word.isalpha():
                self._by_first[word[0]].append((word, _letters(word)))

    def near(self, word: str) -> Sequence[str]:
        """The nearest few that `word` begins, or that it becomes with one slip, or two in a long word."""
        if not _MIN_CHARS - 1 <= len(word) <= _MAX_CHARS or not word.isalpha():
            return ()
        letters, most = _letters(word), 2 if len(word) >= _LONG_CHARS else 1
        found: list[tuple[int, str]] = []
        for other, its_letters in self._by_first.get(word[0], ()):
            if len(word) >= _MIN_CHARS and other.startswith(word):
                found.append((1, other))
            elif abs(len(other) - len(word)) <= most and (letters ^ its_letters).bit_count() <= 2 * most:
                slips = _slips(word, other, most)
                if slips <= most:
                    found.append((slips, other))
        least = min(found, default=(0, ""))[0]
        return [other for slips, other in sorted(found) if slips == least][:_MOST_NEAR]


def _letters(word: str) -> int:
    """One bit for each letter of a word; two letters may share one."""
    bits = 0
    for letter in word:
        bits |= 1 << (ord(letter) & 63)
    return bits


def _slips(one: str, other: str, most: int) -> int:
    """How many letters were left out, added, replaced, or swapped with the next (optimal string alignment).

    Beyond `most` some larger number.
    """
    two_above: list[int] = []
    above = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, its in enumerate(other, 1):
            cost = min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (letter != its))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == its:
                cost = min(cost, two_above[j - 2] + 1)
            row.append(cost)
        if min(row) > most:  # a swap reaches back two rows, but costs one itself
            return most + 1
        two_above, above = above, row
    return above[-1]
