"""Five small services with a state that a task changes and a check reads. Each is an MCP server of four tools."""
