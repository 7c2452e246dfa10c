"""Whether what a user set under `tools.RESOURCE` fits the `config` of its manifest."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

from goat_mcp.core.errors import ErrorCode, ToolError

if TYPE_CHECKING:  # loads the validation library
    from goat_mcp.catalog.schemas.bounded_schema import BoundedSchema

_NAMES_KEYS_ONLY = ("additionalProperties", "required")
"""Keywords whose messages quote no value, which may be a secret."""


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
            ErrorCode.CONFIG, f"tools.{self._resource}{where}: {what}", "Tell the user: the settings are to be mended."
        )
