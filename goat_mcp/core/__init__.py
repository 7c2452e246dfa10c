"""The vocabulary of goat-mcp. No I/O but one look for `/proc`; nothing of ours is imported here but core itself."""
