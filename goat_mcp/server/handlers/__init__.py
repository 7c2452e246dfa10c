"""What answers each family of MCP methods."""
