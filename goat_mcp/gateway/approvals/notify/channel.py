"""Where messages go: what each channel does, and what the channels with buttons do besides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol

from goat_mcp.gateway.approvals.notify.message import Message

FOLDER = "notify"
"""Below the state directory: how far each account's answers were read, and the lock of whoever reads them."""
TEST_TEXT = "This is a test of goat-mcp's approval.notify. Nothing waits for you."


class Channel(Protocol):
    """One entry of `approval.notify`.

    `key` is what it is and where it leads, the same in each process and without a secret; `name` is for people.
    """

    @property
    def key(self) -> str: ...

    @property
    def name(self) -> str: ...

    async def send(self, message: Message) -> str:
        """The id of what was sent if it has buttons, else "". Raises `ToolError`."""
        ...

    async def send_test(self) -> None:
        """Raises `ToolError`."""
        ...

    async def check(self) -> None:
        """Whether it could be used, without sending anything. Raises `ToolError`."""
        ...


@dataclass(frozen=True)
class ButtonPress:
    """A button that somebody pressed. `place` is the chat or channel, `message` the id of what the button is on."""

    approval: str
    digest: str
    approves: bool
    place: str
    message: str
    user: str
    user_name: str


HandlePress = Callable[[ButtonPress], Awaitable[str]]
"""Decides if the press counts. Returns what is shown to whoever pressed."""


class Messenger(Channel, Protocol):
    """A channel whose messages have buttons."""

    @property
    def account(self) -> str:
        """Whose answers only one process may read at a time; for the name of a file."""
        ...

    @property
    def place(self) -> str: ...

    @property
    def user(self) -> str: ...

    async def edit(self, id: str, text: str) -> None:
        """Give a message this text and take its buttons away. Raises `ToolError`."""
        ...

    async def read_answers(self, handle_press: HandlePress) -> None:
        """Wait some seconds for presses and handle each. Raises `ToolError`."""
        ...

    async def stop_reading(self) -> None:
        """Nothing is open any more, or another process reads from now on."""
        ...
