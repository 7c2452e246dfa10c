"""Measurements of goat-mcp against what a user would compare it with. Nothing here is a test; see bench/README.md."""
