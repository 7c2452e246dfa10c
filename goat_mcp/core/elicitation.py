"""Questions to the person behind a client: a flat form and its answer. The server shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Option:
    """One choice: `value` is what comes back, `title` what the person reads (the value if it is empty)."""

    value: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One field of a form: free text without `options`, else one of them, or several where `multiple`."""

    name: str
    title: str
    description: str = ""
    options: tuple[Option, ...] = ()
    multiple: bool = False
    required: bool = False
    default: str = ""
    """What a text field shows at first, if the client can."""
    only_with: str = ""
    """Another question's answer that this one belongs to: who is asked one by one is asked this after that only."""


@dataclass(frozen=True, slots=True)
class Form:
    """What is asked in one go.

    `opens_call` says that nothing of the call has happened yet when it is asked: the call may be made again, by another
    process too, with the answer at hand. `record` says that of a call that wrote down what has happened: made again,
    it gets this text (`ToolContext.restart`). `subject` stands for all that the answer is about: two forms of one text
    may be about different calls.
    """

    message: str
    questions: tuple[Question, ...]
    opens_call: bool = False
    record: str = ""
    subject: str = ""


class Reply(StrEnum):
    """The outcome of a form."""

    ACCEPTED = "accepted"
    DECLINED = "declined"
    CANCELLED = "cancelled"
    UNANSWERED = "unanswered"
    """It was shown, as far as we know, and nobody answered in time."""
    UNAVAILABLE = "unavailable"
    """This client cannot be asked."""


Value = str | tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """`values` by question name; only an accepted form has any. A question left empty is absent."""

    reply: Reply
    values: Mapping[str, Value] = field(default_factory=dict[str, Value])

    def text(self, name: str) -> str:
        """The answer to a question that takes one value; empty if it was left empty."""
        value = self.values.get(name, "")
        return value if isinstance(value, str) else ", ".join(value)


class Ask(Protocol):
    """Put a form to the person behind the client. Never raises for lack of an answer: that is a `Reply`."""

    async def __call__(self, form: Form) -> Answer: ...


async def nobody_to_ask(form: Form) -> Answer:
    """The `Ask` of a call that no person stands behind."""
    return Answer(Reply.UNAVAILABLE)
