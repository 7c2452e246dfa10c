"""What commands say of a change of a file of the user's own."""

from __future__ import annotations

from goat_mcp.cli.host_changes import say_diff
from goat_mcp.cli.terminal import say
from goat_mcp.state.file_edit import Change, backup_of

NOTHING_WRITTEN = "Nothing was written (--dry-run)."


def say_change(change: Change, *, dry_run: bool) -> None:
    """The diff, and where it is or would be written."""
    say_diff(change)
    if dry_run:
        say(NOTHING_WRITTEN)
    elif change.before is not None:
        say(f"Written: {change.path} (before: {backup_of(change.path).name})")
    else:
        say(f"Written: {change.path}")
