"""The processes that goat-mcp is compared with, each a script run on its own."""
