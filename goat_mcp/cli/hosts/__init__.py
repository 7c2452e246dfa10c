"""Programs that start MCP servers, and their files: read, translated, edited and put back."""
