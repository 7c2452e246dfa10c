"""The vocabulary of goat-mcp. No I/O, and nothing of ours is imported here but core itself."""
