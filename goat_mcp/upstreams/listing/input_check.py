"""Whether a call's arguments are what an upstream's tool was listed with, before anything is sent.

The upstream is the authority on its tools: arguments that fit go to it as they came. If the schema cannot be used, so
do all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from goat_mcp.catalog.schemas.checks_in_threads import OffLoopSchema
from goat_mcp.catalog.schemas.flat_schema import certain_fit
from goat_mcp.catalog.schemas.parameters import Parameters
from goat_mcp.catalog.schemas.references import DATA_KEYWORDS, Local

if TYPE_CHECKING:  # loads the validation library
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

_NAME = "inputSchema"


class InputCheck:
    """One tool's."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = OffLoopSchema(schema, _NAME)
        self._parameters = Parameters(schema, is_open=True)
        self._fits = certain_fit(schema)

    async def checked(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments to send. Raises `ToolError(INPUT)` with a line for each problem."""
        if self._fits(arguments) and not self._schema.is_compiling:
            return arguments
        from goat_mcp.catalog.schemas.bounded_schema import Uncheckable

        try:
            return await self._schema.run(arguments, partial(self._read, arguments))
        except Uncheckable:
            return arguments

    def _read(self, arguments: Mapping[str, Any], compiled: BoundedSchema, max_steps: int) -> Mapping[str, Any]:
        if compiled.mismatch(arguments, max_steps) is None:
            return arguments
        return self._parameters.read(arguments, compiled, max_steps)


def why_unusable(schema: Mapping[str, Any]) -> str:
    """Why calls pass without a check against this schema; empty if they are checked. Compiles it: for a thread."""
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema, Uncheckable

    try:
        BoundedSchema(schema, _NAME)
    except Uncheckable as reason:
        return str(reason)
    local = Local(schema)
    lost = next((reference for reference in _references(schema) if local.target(reference) is None), None)
    return f"its {_NAME} refers to {lost[:80]!r}, which it does not have" if lost is not None else ""


def _references(schema: Mapping[str, Any]) -> Iterable[str]:
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += cast("list[Any]", node)
        elif isinstance(node, dict):
            members = cast("dict[str, Any]", node)
            if isinstance(reference := members.get("$ref"), str):
                yield reference
            waiting += [child for key, child in members.items() if key not in DATA_KEYWORDS]
