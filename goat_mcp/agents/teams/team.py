"""A team: its name, its members and where its mail lies."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from goat_mcp.state.private_file import write_private

LEAD = "main"
"""The session that made the team, as its members address it."""
EVERYONE = "*"
_SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")


def usable_name(name: str) -> str:
    """The name of a team or a member. Raises `ValueError` if it cannot be a file's, or means somebody else."""
    if not _SLUG.match(name) or name.lower() == LEAD:
        raise ValueError(f"wants letters, digits, - and _, at most 64 characters, and not `{LEAD}`; got {name[:80]!r}")
    return name


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody who was started. `session_key` is the one its own calls carry."""

    name: str
    agent_id: str
    session_key: str


@dataclass
class Team:
    """One team of one principal."""

    name: str
    description: str
    principal: str
    folder: Path
    members: dict[str, Member] = field(default_factory=dict[str, Member])
    complete: anyio.Event = field(default_factory=anyio.Event)
    """Set once everybody is started: the first member may write before the last one is there."""
    roster: anyio.Lock = field(default_factory=anyio.Lock)
    """Held while members join, and while the team ends."""

    def by_any_name(self, text: str) -> Member | None:
        """A member by its name or its agent id."""
        return next((member for member in self.members.values() if text in (member.name, member.agent_id)), None)

    def save(self) -> None:
        """Leave on disk who was there, for people and for a server that starts again."""
        record = {
            "name": self.name,
            "description": self.description,
            "members": [{"name": member.name, "agent_id": member.agent_id} for member in self.members.values()],
        }
        write_private(self.folder / "team.json", json.dumps(record, indent=2).encode(), synced=False)
