"""Which options of allow-listed programs stay within what the program's bare name suggests (R-SHELL-4)."""

from goat_mcp.commands.shell.options.unsafe import unsafe_option

__all__ = ["unsafe_option"]
