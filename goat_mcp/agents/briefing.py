"""What an agent is told before its prompt: what its type says, where it works, and who reads its answer."""

from __future__ import annotations

from pathlib import Path

from goat_mcp.agents.agent_type import AgentType
from goat_mcp.agents.worktree import Worktree

_ANSWER = (
    "You work on your own: nobody answers questions. Whoever started you sees your last message and nothing else, so "
    "it has to hold all they asked for: what you found or did, absolute paths, and what did not work."
)


def system_prompt(type: AgentType, directory: Path, worktree: Worktree | None) -> str:
    where = f"You work in {directory}. File tools take absolute paths."
    if worktree is not None:
        where = (
            f"You work in {directory}, a git worktree of its own on branch {worktree.branch}, made from the last "
            "commit. Write absolute paths below it, and run commands there; files elsewhere can be read, not changed. "
            "A path that you were given in the main checkout stands for the same file in your worktree."
        )
    return "\n\n".join(part for part in (type.prompt, where, _ANSWER) if part)
