"""MCP outside, pipeline inside: the adapter, its transports, and who may connect."""
