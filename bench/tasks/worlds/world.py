"""What the five services have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mcp.server.mcpserver import MCPServer

_WORDS = (
    *("The", "report", "came", "from", "a", "customer", "who", "saw", "it", "twice", "this", "week", "after", "an"),
    *("update", "of", "their", "client", "on", "one", "laptop", "with", "two", "screens", "and", "slow", "network"),
    *("while", "people", "worked", "in", "another", "office", "before", "lunch"),
)


@dataclass(frozen=True)
class ToolWords:
    """How people who do not know a tool's name ask for it: in the words of a task, best first."""

    name: str
    queries: Sequence[str]


class World(ABC):
    """One service."""

    name: str
    words: Sequence[ToolWords]

    @property
    @abstractmethod
    def tools(self) -> Sequence[Callable[..., Any]]: ...

    @property
    @abstractmethod
    def state(self) -> Mapping[str, Any]:
        """What a check of a task reads."""

    @abstractmethod
    def reset(self, is_large: bool) -> None:
        """Put the state back, with records so large that a list of them has some 50 KB if asked."""

    def server(self) -> MCPServer[Any]:
        server = MCPServer[Any](self.name)
        for tool in self.tools:
            server.add_tool(tool)
        return server


def long_text(seed: int, chars: int) -> str:
    """Text that does not repeat at once, the same for the same seed."""
    words: list[str] = []
    length = 0
    while length < chars:
        seed = (seed * 1_103_515_245 + 12_345) % 2**31
        words.append(_WORDS[(seed >> 8) % len(_WORDS)])
        length += len(words[-1]) + 1
    return " ".join(words)
