"""What the resident process imports: all that a server over stdio loads until it has answered its first calls."""

from __future__ import annotations

from importlib import import_module

_MODULES = (
    "goat_mcp.cli.main",
    "goat_mcp.cli.serve",
    "goat_mcp.server.run",
)


def preload() -> None:
    """Import all of it; no thread is started and nothing of the user's is read."""
    for name in _MODULES:
        import_module(name)
