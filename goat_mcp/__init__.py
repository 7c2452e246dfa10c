"""goat-mcp: Claude-Code-grade tools and your other MCP servers behind one MCP server."""

__version__ = "0.1.0"
