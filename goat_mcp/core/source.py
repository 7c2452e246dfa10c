"""What yields tools and has a lifetime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from goat_mcp.core.tool import Tool


class ToolSource(Protocol):
    """Built-ins, a manifest directory or one upstream: a named group of tools that changes in one step."""

    @property
    def name(self) -> str: ...

    def tools(self) -> Sequence[Tool[Any]]: ...
