"""The folder that an upstream's process works in: that of the client it works for, never `/` (WSP-2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from goat_mcp.upstreams.config.entry import HttpEndpoint, StdioLaunch
from goat_mcp.upstreams.faults import StartFailure
from goat_mcp.upstreams.reason_code import ReasonCode

WORKSPACE = "${workspace}"


def needs_workspace(target: StdioLaunch | HttpEndpoint) -> bool:
    """Whether the entry names the caller's workspace: each gets a process of its own then."""
    if not isinstance(target, StdioLaunch):
        return False
    return any(WORKSPACE in text for text in (target.command, *target.args, *target.env.values(), target.cwd or ""))


def follows_client(target: StdioLaunch | HttpEndpoint) -> bool:
    """Whether it says nothing of a folder: a handshake client that tells its roots has a process in the first."""
    return isinstance(target, StdioLaunch) and target.cwd is None and not needs_workspace(target)


def first_here(roots: Sequence[Path]) -> Path | None:
    """The first of a client's roots that can be worked in: it may be on another machine."""
    for root in roots:
        with suppress(OSError):
            if root.is_dir():
                return root
    return None


def in_workspace(target: StdioLaunch | HttpEndpoint, root: Path | None) -> StdioLaunch | HttpEndpoint:
    """As it is started for a client whose workspace is `root`. Raises `StartFailure` where it needs one that is not."""
    if not isinstance(target, StdioLaunch):
        return target
    if not needs_workspace(target):
        return replace(target, cwd=str(root or _elsewhere())) if target.cwd is None else target
    if root is None:
        raise StartFailure(
            ReasonCode.NO_WORKSPACE, f"its entry says {WORKSPACE}, and neither the client nor the settings name one"
        )

    def named(text: str) -> str:
        return text.replace(WORKSPACE, str(root))

    return replace(
        target,
        command=named(target.command),
        args=tuple(map(named, target.args)),
        env={name: named(value) for name, value in target.env.items()},
        cwd=named(target.cwd) if target.cwd is not None else str(root),
    )


def _elsewhere() -> Path:
    """Where we were started ourselves, as a host without a workspace does it."""
    here = Path.cwd()
    return Path.home() if here == Path(here.anchor) else here


RootOf = Callable[[], Path | None]
"""The workspace that one connection is for."""
