"""The extension `io.modelcontextprotocol/tasks` (SEP-2663) over the gateway's background tasks (design 0037)."""
