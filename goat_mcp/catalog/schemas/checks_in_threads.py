"""Checks against a JSON Schema from others that hold up nobody else's calls.

The first check loads the validation library and compiles, in a thread. Later ones of an ordinary size run where they
are, since that takes less time than getting to a thread.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import anyio.to_thread

if TYPE_CHECKING:  # loads the validation library
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

Found = TypeVar("Found")
_WEIGHT_IN_PLACE = 300
_STEPS_IN_PLACE = 3_000
_MAX_WEIGHT = 100_000


class OffLoopSchema:
    """One schema, `name` is what errors call it."""

    def __init__(self, schema: Any, name: str) -> None:
        self.schema = schema
        self._name = name
        self._compiled: BoundedSchema | None = None
        self._compiling = anyio.Lock()
        self.unusable = ""
        """Why nothing can be checked against it, once that is known."""
        self._is_costly = False
        self._max_weight = _MAX_WEIGHT
        self._beyond = "a value was too large to check"

    @property
    def is_compiling(self) -> bool:
        """Whether earlier checks wait for that: later ones come after them, also those that need no library."""
        return self._compiling.locked()

    async def run(self, value: Any, check: Callable[[BoundedSchema, int], Found]) -> Found:
        """`check` is called with the compiled schema and the number of steps that it may take.

        Raises what `check` raises, and `Uncheckable` if schema or value are beyond what we check.
        """
        compiled = await self.compiled()
        from goat_mcp.catalog.schemas.bounded_schema import MAX_STEPS, Uncheckable

        weight = weight_of(value)
        if weight >= self._max_weight:
            raise Uncheckable(self._beyond)
        if weight < _WEIGHT_IN_PLACE and not self._is_costly:
            try:
                return check(compiled, _STEPS_IN_PLACE)
            except Uncheckable:
                self._is_costly = True
        try:
            return await anyio.to_thread.run_sync(check, compiled, MAX_STEPS)
        except Uncheckable as reason:
            # Trying it again with as much or more would cost the same every time.
            self._max_weight, self._beyond = weight, str(reason)
            raise

    async def compiled(self) -> BoundedSchema:
        """Raises `Uncheckable`."""
        if not (self._compiled or self.unusable) or self._compiling.locked():
            # One by one, so that calls that come together go on in the order in which they came.
            async with self._compiling:
                if not (self._compiled or self.unusable):
                    await anyio.to_thread.run_sync(self._compile)
        if self._compiled is None:
            from goat_mcp.catalog.schemas.bounded_schema import Uncheckable

            raise Uncheckable(self.unusable)
        return self._compiled

    def _compile(self) -> None:
        from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema, Uncheckable

        try:
            self._compiled = BoundedSchema(self.schema, self._name)
        except Uncheckable as reason:
            self.unusable = str(reason)
        except RecursionError:
            self.unusable = f"its {self._name} is nested too deeply to check"


def weight_of(value: Any) -> int:
    """How much there is to check, counted no further than what is too much."""
    weight = 0
    left = [value]
    while left and weight < _MAX_WEIGHT:
        one = left.pop()
        weight += 1
        if isinstance(one, str):
            weight += len(one) // 1000
        elif isinstance(one, dict):
            left.extend(cast("dict[str, Any]", one).values())
        elif isinstance(one, list):
            left.extend(cast("list[Any]", one))
    return weight
