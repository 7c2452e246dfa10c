"""What commands say of the running goat-mcp of this user, and how they see a change of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goat_mcp.cli.terminal import say
from goat_mcp.gateway.status.running_servers import running, who


def say_followers(documents: Sequence[Mapping[str, Any]]) -> None:
    """A line on who follows the change, or that nobody does."""
    if documents:
        names = ", ".join(map(who, documents))
        say(f"Running servers follow within 2 seconds: {names}")
    elif running():
        say("No running goat-mcp reads this file; those that are started from now on do.")
    else:
        say("No goat-mcp is running: this counts from the next start on.")
