"""A calendar."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from bench.tasks.worlds.world import ToolWords, World, long_text

_PLAN = (
    ("Planning", "2026-03-02T09:00", "2026-03-02T10:00", ("ana", "bo", "cem")),
    ("Design review", "2026-03-02T14:00", "2026-03-02T15:00", ("bo", "dee")),
    ("Customer call", "2026-03-03T11:00", "2026-03-03T11:30", ("ana", "dee")),
    ("Interview", "2026-03-03T15:00", "2026-03-03T16:00", ("cem",)),
    ("Standup", "2026-03-04T09:00", "2026-03-04T09:15", ("ana", "bo", "cem", "dee")),
    ("Release", "2026-03-05T10:00", "2026-03-05T12:00", ("ana", "cem")),
    ("Retrospective", "2026-03-06T16:00", "2026-03-06T17:00", ("ana", "bo", "cem", "dee")),
    ("Training", "2026-03-09T09:00", "2026-03-09T17:00", ("dee",)),
)
_LARGE_CHARS = 12_000
Time = Annotated[str, Field(description="Local time, as 2026-03-02T09:00.", pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d$")]


def _event(number: str, title: str, start: str, end: str, attendees: list[str], notes: str) -> dict[str, Any]:
    made = {"id": number, "title": title, "start": start, "end": end, "attendees": attendees}
    return {**made, "status": "planned", "reason": "", "notes": notes}


class Calendar(World):
    """A calendar."""

    name = "calendar"
    words = (
        ToolWords("list_events", ("which events are in the calendar between two days", "list events")),
        ToolWords("create_event", ("put a new meeting into the calendar", "create event attendees")),
        ToolWords("move_event", ("move a meeting to another time", "move event")),
        ToolWords("cancel_event", ("cancel a meeting and tell its attendees", "cancel event")),
    )

    def __init__(self) -> None:
        self._events: dict[str, dict[str, Any]] = {}
        self.reset(False)

    @property
    def tools(self) -> Sequence[Callable[..., Any]]:
        return (self.list_events, self.create_event, self.move_event, self.cancel_event)

    @property
    def state(self) -> Mapping[str, Any]:
        return {"events": self._events}

    def reset(self, is_large: bool) -> None:
        self._events.clear()
        for index, (title, start, end, people) in enumerate(_PLAN, 1):
            notes = long_text(index, _LARGE_CHARS if is_large else 60)
            self._events[f"ev{index}"] = _event(f"ev{index}", title, start, end, [*people], notes)

    def list_events(
        self,
        date_from: Annotated[str, Field(description="First day, as 2026-03-02.")],
        date_to: Annotated[str, Field(description="Last day, as 2026-03-06.")],
        attendee: Annotated[str, Field(description="Only events of this person; empty for all.")] = "",
    ) -> dict[str, Any]:
        """List the events of the calendar between two days, earliest first, with their attendees and notes."""
        found = [
            event
            for event in sorted(self._events.values(), key=lambda one: one["start"])
            if date_from <= event["start"][:10] <= date_to and (not attendee or attendee in event["attendees"])
        ]
        return {"events": found}

    def create_event(
        self,
        title: Annotated[str, Field(description="What it is about.", min_length=1)],
        start: Time,
        end: Time,
        attendees: Annotated[list[str], Field(description="Who takes part.")],
    ) -> dict[str, Any]:
        """Put a new event into the calendar and invite its attendees."""
        if end <= start:
            raise ToolError("the event ends before it starts")
        number = f"ev{len(self._events) + 1}"
        self._events[number] = _event(number, title, start, end, attendees, "")
        return {"id": number, "start": start, "end": end}

    def move_event(
        self, id: Annotated[str, Field(description="Id of the event, as ev3.")], start: Time, end: Time
    ) -> dict[str, Any]:
        """Move an event of the calendar to another time; attendees are told."""
        event = self._known(id)
        event.update(start=start, end=end)
        return {"id": id, "start": start, "end": end}

    def cancel_event(
        self,
        id: Annotated[str, Field(description="Id of the event, as ev3.")],
        reason: Annotated[str, Field(description="What attendees are told.", min_length=1)],
    ) -> dict[str, Any]:
        """Cancel an event of the calendar; its attendees are told why."""
        event = self._known(id)
        event.update(status="cancelled", reason=reason)
        return {"id": id, "status": "cancelled"}

    def _known(self, number: str) -> dict[str, Any]:
        if number not in self._events:
            raise ToolError(f"there is no event {number}")
        return self._events[number]
