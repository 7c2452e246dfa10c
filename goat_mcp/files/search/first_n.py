"""The first N of many in their order, with memory for about N."""

from __future__ import annotations

from typing import Generic, TypeVar

EntryT = TypeVar("EntryT", bound="tuple[object, ...]")
_SLACK = 512


class FirstN(Generic[EntryT]):
    """Keeps the N smallest of all tuples it is shown."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._room = 2 * n + _SLACK
        self._kept: list[EntryT] = []
        self.last: EntryT | None = None
        """Once N are there: an entry that is not before this one need not be added."""

    def add(self, entry: EntryT) -> None:
        if self.last is None or entry < self.last:
            self._kept.append(entry)
            if len(self._kept) >= self._room:
                self._drop()

    def entries(self) -> list[EntryT]:
        self._drop()
        return self._kept

    def _drop(self) -> None:
        self._kept.sort()
        del self._kept[self._n :]
        if len(self._kept) == self._n and self._n:
            self.last = self._kept[-1]
