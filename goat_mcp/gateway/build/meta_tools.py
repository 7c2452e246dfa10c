"""The meta-tools, built over one catalog: by them a model reaches the tools that are not listed (DEF-2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.registry import AnyTool
from goat_mcp.catalog.search import CatalogSearch
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.tools.call_tool import CallTool
from goat_mcp.tools.call_tool_readonly import CallToolReadonly
from goat_mcp.tools.describe_tool import DescribeTool
from goat_mcp.tools.search_tools import SearchTools

META_CLASSES: tuple[type[BuiltinTool[Any]], ...] = (SearchTools, DescribeTool, CallTool, CallToolReadonly)
"""In the order they are listed."""


def meta_tools(catalog: Catalog, is_denied: Callable[[ToolSpec], bool]) -> Sequence[AnyTool]:
    """`is_denied`: whether rules deny every call of a tool."""
    search = CatalogSearch(catalog, is_denied)
    return (SearchTools(search), DescribeTool(catalog, search), CallTool(), CallToolReadonly())
