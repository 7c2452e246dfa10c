"""Checks values of a declared tool against its schemas: a call's arguments, and what a user set under `tools.RESOURCE`.

The library that checks values is loaded, and a schema compiled, by the first call that needs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from goat_mcp.catalog.schemas.parameters import Parameters
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.yaml_words import meant_word

if TYPE_CHECKING:
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

_NAMES_KEYS_ONLY = ("additionalProperties", "required")
"""Keywords whose messages quote no value, which may be a secret."""


class ExportParameters:
    """One export's parameters."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._schema = schema
        self._parameters = Parameters(schema)

    @cached_property
    def _compiled(self) -> BoundedSchema:
        from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema, Uncheckable

        try:
            return BoundedSchema(self._schema, "parameters")
        except Uncheckable as why:
            raise _broken(why) from None

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments as the handler gets them. Raises `ToolError(INPUT)` with a line for each problem."""
        from goat_mcp.catalog.schemas.bounded_schema import Uncheckable, UnresolvableReference

        try:
            return self._parameters.read(arguments, self._compiled)
        except UnresolvableReference as why:
            raise _broken(why) from None
        except Uncheckable as why:
            raise ToolError(ErrorCode.INPUT, f"these arguments cannot be checked: {why}", "Send less.") from None


def _broken(why: Exception) -> ToolError:
    return ToolError(ErrorCode.CONFIG, f"the manifest of this tool: {why}", "Tell the user.")


def with_meant_words(values: Any, schema: Any) -> Any:
    """What a user has set; a word that YAML has read as a truth value is that word again where its `enum` has it."""
    if not isinstance(schema, Mapping):
        return values
    keywords = cast("Mapping[str, Any]", schema)
    if not isinstance(values, Mapping):
        return meant_word(values, keywords.get("enum", ()))
    properties: Any = keywords.get("properties") or {}
    given = cast("Mapping[str, Any]", values)
    return {name: with_meant_words(value, properties.get(name)) for name, value in given.items()}


class ConfigCheck:
    """One resource's. The schema is compiled for the first call of a user who has set something."""

    def __init__(self, resource: str, schema: Mapping[str, Any] | None) -> None:
        self._resource = resource
        self._schema = schema

    @cached_property
    def _compiled(self) -> BoundedSchema:
        from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

        return BoundedSchema(self._schema, "config")

    def check(self, values: Mapping[str, Any]) -> None:
        """Raises `ToolError(CONFIG)` with the first thing that is wrong."""
        if not values or self._schema is None:
            return
        from goat_mcp.catalog.schemas.bounded_schema import Uncheckable

        try:
            error: Any = next(self._compiled.errors(values), None)
        except Uncheckable as why:
            raise self._wrong("", str(why)) from None
        if error is not None:
            keyword = str(error.validator)
            told = str(error.message) if keyword in _NAMES_KEYS_ONLY else f"wants {keyword} {error.validator_value}"
            raise self._wrong("".join(f".{part}" for part in error.absolute_path), told)

    def _wrong(self, where: str, what: str) -> ToolError:
        return ToolError(
            ErrorCode.CONFIG,
            f"tools.{self._resource}{where}: {what}",
            "Tell the user: the settings are to be repaired.",
        )
