"""What travels to a client with a question and comes back with its answer (see `suspended_calls`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Opening:
    """Of a question after which its call may be started again, by another process too. Its members: see `Form`."""

    subject: str = ""
    record: str = ""


@dataclass(frozen=True)
class EarlyAnswer:
    """An answer that came before its question, to a process that has not asked it. `mark` is of that question."""

    mark: str
    answer: Any


@dataclass(frozen=True)
class TravellingState:
    """What the sealed state of a suspended call says: its token, the mark of its question, and who holds it.

    `replica` is empty on a server that is alone, `record` if the call has written nothing down. `rounds` is how often
    the client was asked.
    """

    token: str
    mark: str
    replica: str = ""
    record: str = ""
    rounds: int = 0

    def text(self) -> str:
        return ".".join((self.token, self.mark, self.replica, self.record, str(self.rounds)))

    @classmethod
    def read(cls, text: str) -> TravellingState:
        """Also what another version has written, which may have said more or less."""
        token, mark, replica, record, rounds, *_ = (*text.split("."), "", "", "", "")
        return cls(token, mark, replica, record, int(rounds) if rounds.isdecimal() else 0)
