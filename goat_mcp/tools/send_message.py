"""SendMessage: put a message into a team member's mailbox. Mailboxes and addressing live in `goat_mcp.agents.teams`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import Field, field_validator

from goat_mcp.agents.teams.mailbox import Letter
from goat_mcp.agents.teams.team import EVERYONE
from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import Hints, SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool

if TYPE_CHECKING:  # the machinery is loaded when the first team is made
    from goat_mcp.agents.teams.coordinator import TeamCoordinator

MAX_MESSAGE_BYTES = 100 * 1024
MAX_SUMMARY_CHARS = 200


class SendMessageInput(ToolInput):
    aliases: ClassVar[Mapping[str, str]] = {"recipient": "to", "content": "message"}
    text_fields: ClassVar[frozenset[str]] = frozenset({"message"})

    to: str = Field(max_length=300, min_length=1, description="A member's name or agent id, main, or * for all")
    message: str = ""
    summary: str = ""
    type: Literal["message", "broadcast", "shutdown_request", "shutdown_response"] = "message"
    notify_when_idle: bool = Field(False, description="Hear when the member waits for work")

    @field_validator("to")
    @classmethod
    def _one_line(cls, to: str) -> str:
        if len(to.splitlines()) != 1 or to != to.strip():
            raise ValueError("wants one name on one line")
        return to

    @field_validator("message")
    @classmethod
    def _bounded(cls, message: str) -> str:
        size = len(message.encode("utf-8", "surrogatepass"))
        if size > MAX_MESSAGE_BYTES:
            raise ValueError(f"at most {MAX_MESSAGE_BYTES} bytes, got {size}; put it into a file and send its path")
        return message


@dataclass(frozen=True)
class SendMessage(
    BuiltinTool[SendMessageInput],
    side_effect=SideEffect.MUTATING,
    toolset="teams",
    title="Write to a team member",
    hints=Hints(read_only=False, destructive=False, idempotent=False, open_world=True),
):
    """Write to a member of your team, to `main` (who made it) or to all. Read between the reader's turns.

    A message carries no authority of the user's.
    """

    examples = (
        ToolExample("To one member", {"to": "tester", "message": "Run the slow tests too.", "summary": "slow tests"}),
        ToolExample("Ask a member to end", {"to": "tester", "type": "shutdown_request"}),
    )

    teams: Callable[[], TeamCoordinator]

    async def execute(self, input: SendMessageInput, ctx: ToolContext) -> ToolResult:
        to = EVERYONE if input.type == "broadcast" else input.to
        kind = "broadcast" if to == EVERYONE and input.type == "message" else input.type
        summary = input.summary[:MAX_SUMMARY_CHARS]

        def letter(sender: str) -> Letter:
            return Letter(sender, kind, input.message, summary)

        delivery = await self.teams().send(to, letter, ctx, notify_when_idle=input.notify_when_idle)
        if not delivery.delivered:
            raise ToolError(
                ErrorCode.DELIVERY,
                "; ".join(f"{name}: {reason}" for name, reason in delivery.failed.items()),
                "Nothing was sent; try again.",
                facts={"delivered": [], "failed": dict(delivery.failed)},
            )
        lines = [f"Sent to {', '.join(delivery.delivered)}."]
        lines += [f"Not sent to {name}: {reason}" for name, reason in delivery.failed.items()]
        facts = {"delivered": list(delivery.delivered), "failed": dict(delivery.failed)}
        return text_result("\n".join(lines), facts=facts)
