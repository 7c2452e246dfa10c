"""What travels to a client with a question and comes back with its answer (see `suspended_calls`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class EarlyAnswer:
    """An answer that came before its question, to a process that has not asked it.

    `mark` is of that question, `record` what the call wrote down with it.
    """

    mark: str
    answer: Any
    record: str = ""


@dataclass(frozen=True)
class TravellingState:
    """What the sealed state of a suspended call says: its token, the mark of its question, and who holds it.

    `replica` is empty on a server that is alone, `record` if the call has written nothing down.
    """

    token: str
    mark: str
    replica: str = ""
    record: str = ""

    def text(self) -> str:
        return ".".join((self.token, self.mark, self.replica, self.record)).rstrip(".")

    @classmethod
    def read(cls, text: str) -> TravellingState:
        """Also what another version has written, which may have said more or less."""
        token, mark, replica, record, *_ = (*text.split("."), "", "", "")
        return cls(token, mark, replica, record)
