"""Search over the deferred tools of one catalog, and what is shown of a tool that was found (DEF-4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio
import anyio.to_thread

from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.filter import server_of
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import cut_middle
from goat_mcp.core.spec import ToolSpec

if TYPE_CHECKING:  # loaded with the first search
    from goat_mcp.catalog.search_index import ToolIndex

_BUILT_AT_ONCE = 100
"""Tools whose index is made in a moment. More of them are taken off the event loop."""


@dataclass(frozen=True)
class FoundTools:
    """The best of `total` that fit, of `searched` that the caller may see. `servers` are those they are of."""

    tools: Sequence[ToolSpec]
    total: int
    searched: int
    servers: Sequence[str]


class CatalogSearch:
    """What is hidden from a client, or denied to it as a whole, it does not find either (PRF-2)."""

    def __init__(self, catalog: Catalog, is_denied: Callable[[ToolSpec], bool]) -> None:
        self._catalog = catalog
        self._is_denied = is_denied
        self._building = anyio.Lock()
        self._built: dict[Catalog, tuple[int, ToolIndex]] = {}

    async def find(self, query: str, ctx: ToolContext, *, limit: int, server: str = "") -> FoundTools:
        """The deferred tools that `query` means, of one server if it is named."""
        catalog = self._catalog.of(ctx.rights)
        open_to_caller = [spec for spec in _deferred(catalog) if self.shows(spec, ctx)]
        names = {spec.name for spec in open_to_caller if not server or server_of(spec) == server}
        index = await self._index(catalog)
        tools, total = index.best(query, lambda spec: spec.name in names, limit)
        servers = tuple(dict.fromkeys(map(server_of, open_to_caller)))
        return FoundTools(tools, total, len(names), servers)

    def shows(self, spec: ToolSpec, ctx: ToolContext) -> bool:
        """Whether this caller may know more of a tool of the catalog than its name."""
        return ctx.rights.permits(spec.rule_name, spec.name) and not self._is_denied(spec)

    async def _index(self, catalog: Catalog) -> ToolIndex:
        from goat_mcp.catalog.search_index import ToolIndex

        async with self._building:  # those who ask meanwhile want the same one
            specs, generation = _deferred(catalog), catalog.generation
            known = self._built.get(catalog)
            if known is None or known[0] != generation:
                if len(specs) <= _BUILT_AT_ONCE:
                    index = ToolIndex(specs)
                else:
                    index = await anyio.to_thread.run_sync(ToolIndex, specs)
                known = self._built[catalog] = (generation, index)
            return known[1]


def _deferred(catalog: Catalog) -> Sequence[ToolSpec]:
    return [tool.spec for tool in catalog.deferred()]


_SENTENCE_CHARS = 200
_PARAMETERS_SHOWN = 12
_PARAMETER_CHARS = 60
_VALUES_SHOWN = 6
_END = re.compile(r"[.!?。](\s|\Z)|\n\s*\n")
_SHORT = {"string": "str", "integer": "int", "number": "number", "boolean": "bool"}


def tool_summary(spec: ToolSpec, server: str) -> dict[str, Any]:
    """As an object: name, server, first sentence, parameters with their types (`?`: optional), risk."""
    return {
        "name": spec.name,
        "server": server,
        "description": first_sentence(spec.description or spec.title),
        "parameters": parameters(spec.input_schema),
        "risk": spec.risk.name.lower(),
    }


def summary_text(found: Mapping[str, Any]) -> str:
    """The same as text for a model."""
    inside = ", ".join(f"{name}: {kind}" for name, kind in found["parameters"].items())
    return f"{found['name']}({inside})\n  {found['description']} [{found['server']}, risk {found['risk']}]"


def first_sentence(text: str) -> str:
    """On one line, cut if it is long."""
    end = _END.search(text.strip())
    sentence = text.strip()[: end.start() + 1] if end is not None else text.strip()
    return cut_middle(" ".join(sentence.split()), _SENTENCE_CHARS)


def parameters(schema: Mapping[str, Any]) -> dict[str, str]:
    """The type of each parameter by name; a `?` at the name's end marks an optional one, which come last."""
    properties: Any = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    known = cast("dict[str, Any]", properties)
    required: Any = schema.get("required")
    wanted = [name for name in known if isinstance(required, list) and name in required]
    optional = [name for name in known if name not in wanted]
    named = [*((name, name) for name in wanted), *((name, f"{name}?") for name in optional)]
    shown = {cut_middle(shown_as, _PARAMETER_CHARS): _kind(known[name]) for name, shown_as in named[:_PARAMETERS_SHOWN]}
    if len(named) > _PARAMETERS_SHOWN:
        shown["..."] = f"{len(named) - _PARAMETERS_SHOWN} more"
    return shown


def _kind(schema: Any) -> str:
    """A type in a few characters: `str`, `int[]`, `open|closed`."""
    if not isinstance(schema, dict):
        return "any"
    stated = cast("dict[str, Any]", schema)
    values: Any = stated.get("enum")
    if isinstance(values, list) and values and all(isinstance(one, str) for one in cast("list[Any]", values)):
        texts = cast("list[str]", values)
        more = "|..." if len(texts) > _VALUES_SHOWN else ""
        return cut_middle("|".join(texts[:_VALUES_SHOWN]), _PARAMETER_CHARS) + more
    kind: Any = stated.get("type")
    if isinstance(kind, list):
        return "|".join(_named(one) for one in cast("list[Any]", kind) if one != "null") or "any"
    if kind == "array":
        return f"{_kind(stated.get('items'))}[]"
    arms: Any = stated.get("anyOf") or stated.get("oneOf")
    if kind is None and isinstance(arms, list):
        kinds = [_kind(arm) for arm in cast("list[Any]", arms)[:_VALUES_SHOWN]]
        return "|".join(dict.fromkeys(one for one in kinds if one != "null")) or "any"
    return _named(kind)


def _named(kind: Any) -> str:
    return _SHORT.get(kind, kind) if isinstance(kind, str) else "any"
