"""Child processes: how they start, how their output is kept, and how they end with everything they started."""

from goat_mcp.processes.process_guard import ProcessGuard

__all__ = ["ProcessGuard"]
