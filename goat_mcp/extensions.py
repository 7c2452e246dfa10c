"""What an extension imports from goat-mcp (docs/extensions.md). These names stay where they are."""

from goat_mcp.calls.extensions import CallNext, Extension
from goat_mcp.calls.extensions.extension_points import Step, StepView
from goat_mcp.calls.extensions.installed import ExtensionTools

__all__ = ["CallNext", "Extension", "ExtensionTools", "Step", "StepView"]
