"""goat-mcp: Claude-Code-grade tools and your other MCP servers behind one MCP server.

The public names of the package are those of `__all__`, with `goat_mcp.embed` and `goat_mcp.extensions`, which have some
of them too. Everything else is private and may change with any version. A name is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from goat_mcp.core.version import __version__

if TYPE_CHECKING:
    from goat_mcp.calls.extensions import CallNext, Extension
    from goat_mcp.calls.extensions.extension_points import Step, StepView
    from goat_mcp.calls.extensions.installed import ExtensionTools
    from goat_mcp.calls.hooks import Hooks, PreToolUse
    from goat_mcp.catalog.openai_format import definitions, tool_message
    from goat_mcp.catalog.registry import NameTaken, Registry
    from goat_mcp.core.context import ToolContext
    from goat_mcp.core.elicitation import Answer, Ask, Form, Reply
    from goat_mcp.core.errors import ErrorCode, ToolError
    from goat_mcp.core.result import ToolResult, text_block, text_result
    from goat_mcp.core.side_effect import SideEffect
    from goat_mcp.core.spec import ToolSpec
    from goat_mcp.core.tool import Access, Tool
    from goat_mcp.embed import CallProgress, EmbeddedTools, ToolBox, ToolMessages, mcp_tools, open_tools
    from goat_mcp.settings.settings import BrokenSettings

__all__ = [
    "Access",
    "Answer",
    "Ask",
    "BrokenSettings",
    "CallNext",
    "CallProgress",
    "EmbeddedTools",
    "ErrorCode",
    "Extension",
    "ExtensionTools",
    "Form",
    "Hooks",
    "NameTaken",
    "PreToolUse",
    "Registry",
    "Reply",
    "SideEffect",
    "Step",
    "StepView",
    "Tool",
    "ToolBox",
    "ToolContext",
    "ToolError",
    "ToolMessages",
    "ToolResult",
    "ToolSpec",
    "__version__",
    "definitions",
    "mcp_tools",
    "open_tools",
    "text_block",
    "text_result",
    "tool_message",
]

_NAMES_OF = {
    "calls.extensions": ("CallNext", "Extension"),
    "calls.extensions.extension_points": ("Step", "StepView"),
    "calls.extensions.installed": ("ExtensionTools",),
    "calls.hooks": ("Hooks", "PreToolUse"),
    "catalog.openai_format": ("definitions", "tool_message"),
    "catalog.registry": ("NameTaken", "Registry"),
    "core.context": ("ToolContext",),
    "core.elicitation": ("Answer", "Ask", "Form", "Reply"),
    "core.errors": ("ErrorCode", "ToolError"),
    "core.result": ("ToolResult", "text_block", "text_result"),
    "core.side_effect": ("SideEffect",),
    "core.spec": ("ToolSpec",),
    "core.tool": ("Access", "Tool"),
    "embed": ("CallProgress", "EmbeddedTools", "ToolBox", "ToolMessages", "mcp_tools", "open_tools"),
    "settings.settings": ("BrokenSettings",),
}
_HOME_OF = {name: f"goat_mcp.{module}" for module, names in _NAMES_OF.items() for name in names}


def __getattr__(name: str) -> Any:
    if (home := _HOME_OF.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(home), name)


def __dir__() -> list[str]:
    return __all__
