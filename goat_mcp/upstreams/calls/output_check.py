"""Whether an upstream's results are what its output schemas promise, and what follows if not (REL-3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from goat_mcp.catalog.schemas.checks_in_threads import OffLoopSchema
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.telemetry import Telemetry

if TYPE_CHECKING:  # loads the validation library
    from goat_mcp.catalog.schemas.bounded_schema import Mismatch

OutputMode = Literal["off", "warn", "strict"]
MISSING: Any = object()
"""Stands for a result without `structuredContent`, as opposed to one where it is null."""

MAX_TOOLS_KEPT = 1000


@dataclass
class _Known:
    """A tool's schema as it was last seen."""

    schema: OffLoopSchema
    was_reported: bool = False


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
        if known is None or (known.schema.schema is not schema and known.schema.schema != schema):
            self._unchecked.pop(_shown(tool), None)
            known = _Known(OffLoopSchema(schema, "outputSchema"))
            _keep(self._known, tool, known)
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

    async def _mismatch(self, tool: str, known: _Known, data: Any) -> tuple[str, str, str] | None:
        from goat_mcp.catalog.schemas.bounded_schema import Uncheckable

        found: Mismatch | None
        try:
            if data is MISSING:
                await known.schema.compiled()
                return "$", "required", "structuredContent, which is missing"
            found = await known.schema.run(data, lambda compiled, max_steps: compiled.mismatch(data, max_steps))
        except Uncheckable as reason:
            self._skip(tool, str(reason))
            return None
        return (found.path, found.keyword, found.demand) if found is not None else None

    def _skip(self, tool: str, reason: str) -> None:
        _keep(self._unchecked, _shown(tool), reason)


def _shown(tool: str) -> str:
    from goat_mcp.files.documents.visible_text import make_visible

    return make_visible(tool[:200])


def _keep(known: dict[str, Any], tool: str, value: Any) -> None:
    """Remember, and forget the oldest where an upstream invents names without end."""
    known.pop(tool, None)
    known[tool] = value
    if len(known) > MAX_TOOLS_KEPT:
        del known[next(iter(known))]
