"""What a server of several people has on, in sentences: for the start of `serve --http` and for `doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.catalog.builtin_contracts import builtin_contracts
from goat_mcp.gateway.build.tools import ToolSelection
from goat_mcp.settings.settings import Settings

_NAMES_SHOWN = 12


def shared_server_lines(settings: Settings) -> Sequence[str]:
    """Nothing without an identity provider. Raises `BrokenSettings` for tools that nobody knows."""
    identity = settings.identity
    if not identity.is_on:
        return ()
    chosen = ToolSelection(settings, (), for_many=True).filter()
    on = [spec.name for spec in builtin_contracts() if chosen.admits(spec)]
    more = f" and {len(on) - _NAMES_SHOWN} more" if len(on) > _NAMES_SHOWN else ""
    tools = f"{', '.join(on[:_NAMES_SHOWN])}{more}" if on else "none (identity.tools names those that are on)"
    where = {
        "shared": "all work in the same directory",
        "per_principal": "each principal has a directory of its own, and commands run in a sandbox only",
    }[identity.workspace]
    administrators = [*identity.administrators, *(f"group {name}" for name in identity.administrator_groups)]
    return (
        f"tokens of {identity.issuer} are accepted",
        f"built-in tools over HTTP: {tools}; {where}",
        f"administrators: {', '.join(administrators) or 'none but the operator'}",
    )
