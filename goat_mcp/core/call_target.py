"""The input of a tool that stands for a call of another one: which, and with what arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from goat_mcp.core.arguments import ToolInput


class CallTarget(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {
        "tool": "name",
        "tool_name": "name",
        "input": "arguments",
        "args": "arguments",
        "parameters": "arguments",
    }

    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)
