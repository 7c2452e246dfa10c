"""What an agent is to do, as somebody asked for it: the tool Agent, or a team for its members."""

from __future__ import annotations

from dataclasses import dataclass

from goat_mcp.agents.engine import Mail
from goat_mcp.agents.inbox import Inbox

WITHHELD = frozenset({"AskUserQuestion", "ExitPlanMode", "TodoWrite", "TeamCreate", "SendMessage", "TeamDelete"})
"""What only whoever talks with the user may do, and the user's own list, which an agent would overwrite."""


@dataclass(frozen=True, kw_only=True)
class AgentRequest:
    """Empty fields leave the choice to the type and the settings.

    `resume` is the id or name of an agent that has ended. `background` wants it to outlive its call. `withheld` are
    tools it never has, `granted` those it has whatever its type says, and that nobody is asked about; `mail` is what
    others tell it while it works.
    """

    title: str
    prompt: str
    type_name: str = ""
    model: str = ""
    effort: str = ""
    mode: str = ""
    name: str = ""
    isolation: str = ""
    resume: str = ""
    max_turns: int | None = None
    background: bool = False
    withheld: frozenset[str] = WITHHELD
    granted: frozenset[str] = frozenset()
    mail: Mail | None = None
    inbox: Inbox | None = None
    """What it is told and asked by others, where that is not a team's mail."""
