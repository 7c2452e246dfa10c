"""Teams of background agents that write to each other. What an agent is, and how it runs, is `goat_mcp.agents`."""
