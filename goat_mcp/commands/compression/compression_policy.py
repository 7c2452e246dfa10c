"""Whether a call's output is compressed: decided for its model, then for all, then by where the model runs (goa)."""

from __future__ import annotations

from fnmatch import fnmatchcase

from goat_mcp.core.calling_model import calling_model
from goat_mcp.core.context import ToolContext
from goat_mcp.processes.bash_options import BashOptions


def is_wanted(options: BashOptions, ctx: ToolContext) -> bool:
    """The first pattern that one of the model's names matches decides; `null` for all leaves it to the place."""
    model = calling_model(ctx)
    names = [name.lower() for name in model.names] if model else []
    for pattern, wanted in options.compress_output_of_model.items():
        if any(fnmatchcase(name, pattern.lower()) for name in names):
            return wanted
    for_all = ctx.setting("bash.compress_output", options.compress_output)
    if for_all is not None:
        return for_all
    return model is not None and model.is_local
