"""What a user has run before and after each call: Python functions of an embedder, and programs (`commands`).

Only the names that wiring needs are loaded here; programs' side is imported where there are any.
"""

from goat_mcp.calls.hooks.stages import HookOutcome, Hooks, PreToolUse

__all__ = ["HookOutcome", "Hooks", "PreToolUse"]
