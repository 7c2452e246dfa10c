"""What an agent's command line prints, as it comes: Claude Code's JSON, one document or a stream of events, or text."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from goat_mcp.agents.tool_uses import ToolUse
from goat_mcp.core.json_values import count, items, mapping

MAX_TEXT_CHARS = 1_000_000
_MAX_LINE_BYTES = 32 * 1024 * 1024
OUT_OF_TURNS = "error_max_turns"


@dataclass(frozen=True, slots=True)
class CommandReport:
    """`failure` is the program's own word for what went wrong. Tokens are None where it counted none."""

    text: str = ""
    session: str = ""
    turns: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    failure: str = ""
    out_of_turns: bool = False
    is_whole: bool = True
    """The program has reported that it is done, or its output is plain text, which cannot say so."""


class ReportReader:
    """Fed with output. `on_event` hears of a turn and what is done in it as soon as it is known."""

    def __init__(self, on_event: Callable[[int, str], None]) -> None:
        self._on_event = on_event
        self._line = bytearray()
        self._skipping = False
        self._plain: list[str] = []
        self._plain_chars = 0
        self._saw_events = False
        self._result: Mapping[str, Any] | None = None
        self._last_text = ""
        self._turns: set[str] = set()
        self.session = ""

    @property
    def turns(self) -> int:
        return len(self._turns)

    @property
    def is_done(self) -> bool:
        """Whether it has given its result already."""
        return self._result is not None

    @property
    def last_text(self) -> str:
        """The newest text of the agent so far."""
        return self._last_text

    def feed(self, data: bytes) -> None:
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._line += line
            self._end_line()
        self._line += rest
        if len(self._line) > _MAX_LINE_BYTES:
            self._line.clear()
            self._skipping = True

    def end(self) -> CommandReport:
        """No more comes."""
        if self._line:
            self._end_line()
        plain = "\n".join(self._plain).strip()
        if not self._saw_events and plain[:1] in ("{", "["):
            self._read_document(plain)
        if self._result is not None:
            return self._finished(self._result)
        if self._saw_events:
            return CommandReport(self._last_text, self.session, self.turns, is_whole=False)
        return CommandReport(plain, turns=1 if plain else 0)

    def _end_line(self) -> None:
        line, self._line = bytes(self._line), bytearray()
        if self._skipping:
            self._skipping = False
            return
        event = _object(line) if line.lstrip()[:1] == b"{" else None
        if event is not None and isinstance(event.get("type"), str):
            self._read_event(event)
        elif self._plain_chars < MAX_TEXT_CHARS:
            text = line.decode("utf-8", "replace").rstrip("\r")[: MAX_TEXT_CHARS - self._plain_chars]
            self._plain.append(text)
            self._plain_chars += len(text) + 1

    def _read_document(self, text: str) -> None:
        """One JSON document over several lines, or a list of events."""
        try:
            document: Any = json.loads(text)
        except (ValueError, RecursionError):
            return
        if isinstance(document, list):
            for event in cast("list[Any]", document):
                self._read_event(mapping(event))
        elif "result" in document or "response" in document:
            self._result = cast("dict[str, Any]", document)

    def _read_event(self, event: Mapping[str, Any]) -> None:
        self._saw_events = True
        if isinstance(session := event.get("session_id"), str):
            self.session = session
        match event.get("type"):
            case "result":
                self._result = event
            case "assistant" if not event.get("parent_tool_use_id"):
                self._read_message(mapping(event.get("message")))
            case _:
                pass

    def _read_message(self, message: Mapping[str, Any]) -> None:
        # One message comes in several events, a block in each.
        self._turns.add(str(message.get("id", len(self._turns))))
        blocks = [mapping(block) for block in items(message.get("content"))]
        texts = [str(block.get("text", "")) for block in blocks if block.get("type") == "text"]
        if any(text.strip() for text in texts):
            self._last_text = "\n".join(texts)[:MAX_TEXT_CHARS]
        uses = [_use(block).summary for block in blocks if block.get("type") == "tool_use"]
        self._on_event(self.turns, "; ".join(uses) or "thinking")

    def _finished(self, result: Mapping[str, Any]) -> CommandReport:
        given = result.get("result", result.get("response"))
        text = given[:MAX_TEXT_CHARS] if isinstance(given, str) else ""
        subtype = str(result.get("subtype") or "")
        out_of_turns = subtype == OUT_OF_TURNS
        failed = not out_of_turns and (result.get("is_error") is True or subtype.startswith("error"))
        usage = mapping(result.get("usage"))
        read = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        counted = count(result.get("num_turns"))
        session = result.get("session_id")
        return CommandReport(
            text=text or self._last_text,
            session=session if isinstance(session, str) else self.session,
            turns=max(self.turns if counted is None else counted, 1),
            input_tokens=_sum(usage, read),
            output_tokens=_sum(usage, ("output_tokens",)),
            failure=(text or _errors(result) or subtype or "it does not say why") if failed else "",
            out_of_turns=out_of_turns,
        )


def _use(block: Mapping[str, Any]) -> ToolUse:
    return ToolUse("", str(block.get("name", "")), dict(mapping(block.get("input"))))


def _errors(result: Mapping[str, Any]) -> str:
    errors: Any = result.get("errors") or result.get("error")
    if isinstance(errors, list):
        listed = cast("list[Any]", errors)
        return "; ".join(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in listed)[:500]
    return json.dumps(errors, ensure_ascii=False)[:500] if errors else ""


def _sum(usage: Mapping[str, Any], names: Sequence[str]) -> int | None:
    counts = [found for name in names if (found := count(usage.get(name))) is not None]
    return sum(counts) if counts else None


def _object(line: bytes) -> dict[str, Any] | None:
    try:
        parsed: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else None
