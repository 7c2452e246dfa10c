"""The exit codes of every command, as MCP Inspector has them."""

from __future__ import annotations

OK = 0
USAGE = 1
"""Wrong usage, or settings and files that cannot be used."""
AUTH = 3
"""A login or a token is missing."""
UNREACHABLE = 4
"""A server behind goat-mcp cannot be reached."""
TOOL_ERROR = 5
"""The tool answered with an error."""
NOT_PORTABLE = 6
"""A schema that clients refuse."""
INTERRUPTED = 130
"""Ctrl-C, or nobody reads what we print."""
