"""A settings file of Claude Code that the user names: its permission rules and hooks, in force here as well.

What of it Claude Code knows and this program does not is a note, never an error; a broken file stops the start.
"""

from goat_mcp.settings.claude.reading import BrokenClaudeSettings, ClaudeSettings, RuleText, read_claude_settings

__all__ = ["BrokenClaudeSettings", "ClaudeSettings", "RuleText", "read_claude_settings"]
