"""User code around each call: `wrapping` runs it, `installed` finds it among the installed packages."""

from goat_mcp.calls.extensions.extension_points import CallNext, Extension, ExtensionFailed, wrapped

__all__ = ["CallNext", "Extension", "ExtensionFailed", "wrapped"]
