"""Whether an upstream's results are what its output schemas promise, and what follows if not (REL-3).

The first result that has a schema loads the validation library and compiles, in a thread; later ones of an ordinary
size are checked where they are, since that takes less time than getting to a thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

import anyio

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.telemetry import Telemetry

if TYPE_CHECKING:  # loads the validation library
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema, Mismatch

OutputMode = Literal["off", "warn", "strict"]
MISSING: Any = object()
"""Stands for a result without `structuredContent`, as opposed to one where it is null."""

MAX_TOOLS_KEPT = 1000
_WEIGHT_IN_PLACE = 300
_STEPS_IN_PLACE = 3_000
_MAX_WEIGHT = 100_000


@dataclass
class _Known:
    """A tool's schema as it was last seen. `compiled` is None where it cannot be checked against."""

    schema: Mapping[str, Any]
    compiled: BoundedSchema | None
    was_reported: bool = False
    is_costly: bool = False
    max_weight: int = _MAX_WEIGHT


class OutputCheck:
    """Checks the results of one upstream."""

    def __init__(self, upstream: str, mode: OutputMode, telemetry: Telemetry) -> None:
        self._upstream = upstream
        self._mode = mode
        self._telemetry = telemetry
        self._known: dict[str, _Known] = {}
        self._unchecked: dict[str, str] = {}
        self.mismatches = 0

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Tools of which a result went unchecked, each with the reason."""
        return tuple(f"{tool}: {reason}" for tool, reason in self._unchecked.items())

    async def check(self, tool: str, schema: Mapping[str, Any], data: Any) -> None:
        """Count a mismatch of a successful result; in strict mode raise it as `ToolError(UPSTREAM)`."""
        if self._mode == "off":
            return
        known = self._known.get(tool)
        if known is None or (known.schema is not schema and known.schema != schema):
            known = await self._learn(tool, schema)
        if known.compiled is None:
            return
        found = await self._mismatch(tool, known, data)
        if found is None:
            return
        self.mismatches += 1
        path, keyword, demand = found
        if not known.was_reported:
            # What the result holds stays out of the log.
            self._telemetry.warning(
                "result breaks its outputSchema", upstream=self._upstream, tool=tool[:200], path=path, keyword=keyword
            )
            known.was_reported = True
        if self._mode == "strict":
            raise ToolError(
                ErrorCode.UPSTREAM,
                f"upstream {self._upstream} ran the call, but its result breaks the tool's outputSchema: "
                f"structuredContent at {path} does not satisfy {demand}",
                "Check the outcome another way; the operator can relay such results with output_check: warn.",
                facts={"upstream": self._upstream, "reason": "output_mismatch", "path": path, "keyword": keyword},
            )

    async def _learn(self, tool: str, schema: Mapping[str, Any]) -> _Known:
        compiled = await anyio.to_thread.run_sync(_compiled, schema)
        if isinstance(compiled, str):
            self._skip(tool, compiled)
        else:
            self._unchecked.pop(_shown(tool), None)
        known = _Known(schema, None if isinstance(compiled, str) else compiled)
        _keep(self._known, tool, known)
        return known

    async def _mismatch(self, tool: str, known: _Known, data: Any) -> tuple[str, str, str] | None:
        from goat_mcp.catalog.schemas.bounded_schema import Uncheckable

        if data is MISSING:
            return "$", "required", "structuredContent, which is missing"
        compiled = cast("BoundedSchema", known.compiled)
        weight = _weight(data)
        if weight >= known.max_weight:
            if weight >= _MAX_WEIGHT:
                self._skip(tool, "a result was too large to check")
            return None
        found: Mismatch | None
        if weight < _WEIGHT_IN_PLACE and not known.is_costly:
            try:
                found = compiled.mismatch(data, _STEPS_IN_PLACE)
                return (found.path, found.keyword, found.demand) if found is not None else None
            except Uncheckable:
                known.is_costly = True
        try:
            found = await anyio.to_thread.run_sync(compiled.mismatch, data)
        except Uncheckable as reason:
            # Trying it again with as much or more would cost the same every time.
            known.max_weight = weight
            self._skip(tool, str(reason))
            return None
        return (found.path, found.keyword, found.demand) if found is not None else None

    def _skip(self, tool: str, reason: str) -> None:
        _keep(self._unchecked, _shown(tool), reason)


def _compiled(schema: Mapping[str, Any]) -> BoundedSchema | str:
    """The schema, or why it cannot be used."""
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema, Uncheckable

    try:
        return BoundedSchema(schema)
    except Uncheckable as reason:
        return str(reason)
    except RecursionError:
        return "its outputSchema is nested too deeply to check"


def _shown(tool: str) -> str:
    from goat_mcp.files.documents.visible_text import make_visible

    return make_visible(tool[:200])


def _keep(known: dict[str, Any], tool: str, value: Any) -> None:
    """Remember, and forget the oldest where an upstream invents names without end."""
    known.pop(tool, None)
    known[tool] = value
    if len(known) > MAX_TOOLS_KEPT:
        del known[next(iter(known))]


def _weight(data: Any) -> int:
    """How much there is to check, counted no further than `_MAX_WEIGHT`."""
    weight = 0
    left = [data]
    while left and weight < _MAX_WEIGHT:
        value = left.pop()
        weight += 1
        if isinstance(value, str):
            weight += len(value) // 1000
        elif isinstance(value, dict):
            left.extend(cast("dict[str, Any]", value).values())
        elif isinstance(value, list):
            left.extend(cast("list[Any]", value))
    return weight
