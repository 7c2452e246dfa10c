"""Other MCP servers behind this one: configuration, supervision, relay and their tools. Nothing of our server side."""
