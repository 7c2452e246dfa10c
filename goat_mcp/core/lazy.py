"""A part that is made when something first needs it, so that a start does not load its code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lazy(Generic[T]):
    """Call it to get the part: the first call makes it with `make`, later ones return the same object.

    If `make` raises, nothing is kept and the next call tries again. For one thread (the event loop's).
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._made: list[T] = []

    def __call__(self) -> T:
        if not self._made:
            self._made.append(self._make())
        return self._made[0]

    @property
    def made(self) -> T | None:
        """The part, or None if nothing has needed it yet. Never makes it."""
        return self._made[0] if self._made else None
