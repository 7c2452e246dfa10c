"""goat-mcp as other systems have it, on Linux: as far as that can be done, and what cannot is said."""
