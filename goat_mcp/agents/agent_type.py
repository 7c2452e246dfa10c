"""Kinds of agents: what one is told, which tools it has, how it runs. Reading those that users write: `type_files`."""

from __future__ import annotations

from dataclasses import dataclass

READ_ONLY_TOOLS = frozenset(
    {"Read", "Glob", "Grep", "WebFetch", "WebSearch", "ListMcpResources", "ReadMcpResource", "TaskOutput"}
)
DEFAULT_TYPE = "general-purpose"
ALIASES = {"Explore": "explorer", "Plan": "planner"}
"""What Claude Code calls these, unless a file defines a type of that very name."""


@dataclass(frozen=True, kw_only=True)
class AgentType:
    """`prompt` is the system prompt. `tools` None means all its starter has; `denied` wins. Names are rule names, or
    `mcp__SERVER` for all of a server. Empty `model`, `mode`, `effort` and `isolation` say nothing."""

    name: str
    description: str
    prompt: str
    tools: frozenset[str] | None = None
    denied: frozenset[str] = frozenset()
    model: str = ""
    effort: str = ""
    mode: str = ""
    max_turns: int | None = None
    background: bool = False
    isolation: str = ""
    source: str = "built in"


BUILT_IN = (
    AgentType(
        name=DEFAULT_TYPE,
        description="Any task of several steps: it may do whatever its starter may.",
        prompt=(
            "You are an agent that carries out one task on its own. Do all that was asked and nothing else. "
            "Look before you change anything: search widely when you do not know where something is, read a file "
            "before you edit it, prefer changing files to adding new ones. Check your work where it can be checked "
            "(run the tests, read the result), and say so plainly when something did not work."
        ),
    ),
    AgentType(
        name="explorer",
        description="Finds things out and changes nothing: where code is, how it works, what a page says.",
        prompt=(
            "You find things out and change nothing. Search by name and by content, in several wordings and places, "
            "and call independent tools in the same turn. Read only the parts that matter. Report what you found with "
            "absolute paths and line numbers, quote the few lines that prove it, and say what you looked for without "
            "finding it."
        ),
        tools=READ_ONLY_TOOLS,
    ),
    AgentType(
        name="planner",
        description="Works out how to make a change, step by step, and changes nothing.",
        prompt=(
            "You plan a change and do not make it. Read the code it touches until you know how it works now. Then "
            "write a plan that somebody else can follow: the approach and why it beats the alternatives, the steps in "
            "order with the files of each, how to test it, what could go wrong. End with the files that matter most."
        ),
        tools=READ_ONLY_TOOLS,
        mode="plan",
    ),
)
