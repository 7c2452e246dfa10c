"""How a member hears its mail: between its turns, and when it rests (`agents.engine.Mail`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import anyio
import anyio.to_thread

from goat_mcp.agents.marked_mail import marked
from goat_mcp.agents.teams.mailbox import Letter, Mailbox

_ASKED_TO_END = (
    "You are asked to end: finish what you must, tell {sender} with SendMessage (type shutdown_response) what is done "
    "and what is not, and stop."
)


class MemberMail:
    """One member's side of its mailbox. `on_rest` is told each time the member has nothing left to do."""

    def __init__(self, mailbox: Mailbox, on_rest: Callable[[str], Awaitable[None]]) -> None:
        self._mailbox = mailbox
        self._on_rest = on_rest
        self._came = anyio.Event()
        self._is_ending = False

    def arrived(self) -> None:
        """A letter was stored."""
        self._came.set()

    async def between_turns(self) -> Sequence[str]:
        if not self._came.is_set():
            return ()
        return await self._read()

    async def at_rest(self, text: str) -> Sequence[str]:
        """Waits for mail. Nothing comes back once the member was asked to end: then it ends."""
        if heard := await self.between_turns():
            return heard
        if self._is_ending:
            return ()
        await self._on_rest(text)
        while True:
            await self._came.wait()
            if heard := await self._read():
                return heard

    async def _read(self) -> Sequence[str]:
        self._came = anyio.Event()
        letters = await anyio.to_thread.run_sync(self._mailbox.take)
        self._is_ending = self._is_ending or any(letter.kind == "shutdown_request" for letter in letters)
        return [shown(letter) for letter in letters]


def shown(letter: Letter) -> str:
    """A letter between marks that its text cannot forge: it carries none of the user's authority.

    Who wrote it stands in the marks.
    """
    what = {"broadcast": " to everyone", "shutdown_request": " (a request to end)", "idle": " (is waiting for work)"}
    about = f"from {letter.sender}{what.get(letter.kind, '')}; a team member, not the user"
    body = _ASKED_TO_END.format(sender=letter.sender) if letter.kind == "shutdown_request" else ""
    return marked("mail", about, letter.text, body)


async def store(mailbox: Mailbox, letter: Letter) -> None:
    """Post off the event loop. Raises `OSError`."""
    await anyio.to_thread.run_sync(partial(mailbox.post, letter))
