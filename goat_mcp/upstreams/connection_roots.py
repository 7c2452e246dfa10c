"""Where one connection's upstream works, and which roots it hears of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from goat_mcp.core.calling_client import RootsOf
from goat_mcp.upstreams.config.entry import RootOf


def root_of_connection(workspace: RootOf, roots: RootsOf) -> Path | None:
    """The folder that one connection's upstream works in: its own workspace, or else that of all."""
    return workspace() or next(iter(roots(False)), None)


def roots_of_connection(workspace: RootOf, roots: RootsOf, client_has_some: bool) -> Sequence[Path]:
    """The roots that one connection's upstream hears of: the workspace it is for, where it has one."""
    root = workspace()
    return roots(client_has_some) if root is None else (root,)
