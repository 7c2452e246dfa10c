"""Which tools this user's clients call most, for the list that is shown when there are too many tools to list (D21)."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cache

from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory

_NAMES = 40
"""More than are listed: some may be gone, or not in a client's catalog."""


def tools_used_most(state: StateDirectory, settings: Settings) -> Callable[[], Sequence[str]]:
    """Canonical names of tools of upstreams, the one that was used most before now first. Empty if the record of calls
    cannot be read. They stay the same: a list does not change in the middle of a session. Read when first wanted.

    None where several people are served, who would see each other's choice, or by replicas, whose records differ.
    """
    if settings.identity.is_on or settings.state.url:
        return tuple
    now_s = time.time()

    @cache
    def names() -> Sequence[str]:
        from goat_mcp.calls.audit.call_record import FILE_NAME
        from goat_mcp.calls.audit.recorded_calls import UnreadableRecord, called_most

        try:
            return called_most(state.path / FILE_NAME, _NAMES, now_s)
        except UnreadableRecord:
            return ()

    return names
