"""What runs before and after each call for a user: Python functions of an embedder, and programs (`command`).

Only what every gateway needs is loaded here; the modules for programs are imported if there are any.
"""

from goat_mcp.calls.hooks.stages import HookOutcome, Hooks, PreToolUse

__all__ = ["HookOutcome", "Hooks", "PreToolUse"]
