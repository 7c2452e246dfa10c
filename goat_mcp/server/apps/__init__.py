"""Our MCP Apps: what waits for the user and the catalog, shown inside hosts that render `ui://` documents."""
