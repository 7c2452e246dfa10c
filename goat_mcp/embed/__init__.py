"""goat-mcp inside your own program: a conversation's tools, tools made of your own functions, and both over MCP."""

from goat_mcp.embed.conversation import CallProgress, EmbeddedTools, ToolMessages, open_tools
from goat_mcp.embed.session_tools import mcp_tools
from goat_mcp.embed.toolbox import ToolBox

__all__ = ["CallProgress", "EmbeddedTools", "ToolBox", "ToolMessages", "mcp_tools", "open_tools"]
