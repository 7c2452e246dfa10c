"""Finding files by name and by content: ripgrep, or an engine of our own with the same results."""

from goat_mcp.search.engine import SearchEngine

__all__ = ["SearchEngine"]
