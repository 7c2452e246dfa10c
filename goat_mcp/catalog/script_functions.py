"""The names that tools have as functions of a script (`run_script`)."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Mapping

from goat_mcp.catalog.app_tools import is_for_apps_only
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.core.rights import Rights
from goat_mcp.core.spec import LISTED_ELSEWHERE, ToolSpec

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_]")
_PYTHONS_OWN = frozenset({*keyword.kwlist, *dir(builtins)})
NOT_IN_SCRIPTS = frozenset({*LISTED_ELSEWHERE, "code"})
"""The toolsets whose tools a script cannot call: it has the tools themselves, and starts no other script."""


def script_functions(catalog: Catalog, rights: Rights) -> Mapping[str, ToolSpec]:
    """What a script of a caller with these rights can call, by the name of its function."""
    tools = catalog.of(rights).tools()
    specs = [tool.spec for tool in tools if not is_for_apps_only(tool.spec.meta)]
    return function_names(spec for spec in specs if rights.permits(spec.rule_name, spec.name))


def function_names(specs: Iterable[ToolSpec]) -> Mapping[str, ToolSpec]:
    """A tool's own name if Python takes it for a function's, else the nearest one that it does.

    Of two tools that would have one name, the second in the order of names has a number behind it. So a name stays the
    same as long as the tools do.
    """
    callable_ones = sorted((spec for spec in specs if spec.toolset not in NOT_IN_SCRIPTS), key=lambda spec: spec.name)
    functions = {spec.name: spec for spec in callable_ones if _is_function_name(spec.name)}
    for spec in callable_ones:
        if _is_function_name(spec.name):
            continue
        made = base = _made(spec.name)
        number = 2
        while made in functions:
            made, number = f"{base}_{number}", number + 1
        functions[made] = spec
    return functions


def _is_function_name(name: str) -> bool:
    return name.isascii() and name.isidentifier() and name not in _PYTHONS_OWN


def _made(name: str) -> str:
    made = _NOT_ALLOWED.sub("_", name)
    if made in _PYTHONS_OWN:
        return f"{made}_"
    return made if made[:1].isidentifier() else f"_{made}"
