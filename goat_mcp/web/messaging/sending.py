"""The parts of a text one after the other: where one fails, its caller is told which ones people have read already."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from goat_mcp.core.errors import ToolError

T = TypeVar("T")


async def send_each(parts: Sequence[str], send: Callable[[str, bool], Awaitable[T]], key: str) -> list[T]:
    """What `send` gives for each part; its second argument is whether it is the first. `key` is what the failure's
    facts call those that were sent. Raises the `ToolError` of the one that failed."""
    sent: list[T] = []
    for part in parts:
        try:
            sent.append(await send(part, not sent))
        except ToolError as failed:
            if not sent:
                raise
            raise ToolError(
                failed.code,
                f"{len(sent)} of {len(parts)} messages were sent, then: {failed.message}",
                f"Send only the rest. {failed.suggestion}",
                facts={**(failed.facts or {}), key: sent},
                name=failed.name,
            ) from None
    return sent
