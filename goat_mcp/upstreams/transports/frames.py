"""The wire of a stdio upstream: lines of bytes in, JSON-RPC messages out, with a bound on everything.

Contract: R-UP-2, R-UP-3, REL-4. No processes and no event loop here.
"""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast

from mcp_types import (
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic_core import from_json, to_json

from goat_mcp.core.json_values import with_escaped_surrogates
from goat_mcp.upstreams.faults import Fault, FaultKind, FaultMarks
from goat_mcp.upstreams.transports.notifications import NotificationLimits

MAX_FRAME_BYTES = 16 * 1024 * 1024
_EDGE_BYTES = 512
"""Of a frame that is dropped we keep this much of each end, to learn whose answer it was."""
_ID = rb'"id"\s*:\s*(\d{1,15})\s*'
_ID_FIRST = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*' + _ID + rb'(?!\d|\s|,\s*"method")')
_ID_LAST = re.compile(
    rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*' + _ID + rb"|" + _ID + rb',\s*"jsonrpc"\s*:\s*"2\.0"\s*)\}\s*\Z'
)
_UNREAD_LINE = 0.01
_UNREAD_BYTES = 16 * 1024
"""A line that is not parsed costs so much of one that is, and 1 for so many bytes."""
_LARGE_BYTES = 1024 * 1024
_NO_OBJECT = "its answer is not JSON: it does not begin as an object"


class _Dropped:
    """A line of which nothing but its ends is kept, however long it gets."""

    def __init__(self, begun: bytes | bytearray) -> None:
        self.head = bytes(begun[:_EDGE_BYTES])
        self.tail = bytes(begun[-_EDGE_BYTES:])
        self.size = len(begun)
        self.is_answered = False
        """Whether the request that it answers has failed already."""

    def add(self, part: bytes) -> None:
        self.tail = (self.tail + part[-_EDGE_BYTES:])[-_EDGE_BYTES:]
        self.size += len(part)


@dataclass
class FrameReader:
    """Cuts a byte stream into frames and parses them. Junk is counted and dropped, never raised.

    An answer that is too large or broken fails the request it answers where its id can still be read.
    """

    marks: FaultMarks
    max_frame_bytes: int = MAX_FRAME_BYTES
    limits: NotificationLimits = field(default_factory=NotificationLimits)
    junk_lines: int = 0
    oversized_frames: int = 0
    effort: float = 0.0
    """What all lines cost that became no message: 1 for each that was parsed, far less for one that was not."""
    _held: bytearray = field(default_factory=bytearray)
    _dropping: _Dropped | None = None

    @property
    def is_dropping(self) -> bool:
        """Whether what arrives belongs to a line that cannot become a message any more."""
        return self._dropping is not None

    def feed(self, data: bytes) -> Iterator[JSONRPCMessage]:
        """The messages that `data` completes, and the failures that it makes certain."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            message = self._line_end(data[start:end])
            if message is not None:
                yield message
            start = end + 1
        if start < len(data):
            message = self._hold(data[start:] if start else data)
            if message is not None:
                yield message

    def _hold(self, part: bytes) -> JSONRPCMessage | None:
        """Keep the beginning of a line, as long as it may become a message."""
        if self._dropping is not None:
            self._drop(self._dropping, part)
            return None
        if not self._held:
            part = part.lstrip()
            if part[:1] not in (b"", b"{"):
                # Only objects are messages: what begins otherwise need not be kept to be counted.
                self._dropping = _Dropped(part)
                self.oversized_frames += len(part) > self.max_frame_bytes
                return None
        self._held += part
        return self._drop_held() if len(self._held) > self.max_frame_bytes else None

    def _drop_held(self) -> JSONRPCMessage | None:
        """Let go of a frame that has become too large. Who waits for it need not wait for the rest of it."""
        dropped = self._dropping = _Dropped(self._held)
        self.oversized_frames += 1
        self._held = bytearray()
        failure = self._too_large(dropped.head, b"")
        dropped.is_answered = failure is not None
        return failure

    def _drop(self, dropped: _Dropped, part: bytes) -> None:
        was_oversized = dropped.size > self.max_frame_bytes
        dropped.add(part)
        if not was_oversized and dropped.size > self.max_frame_bytes:
            self.oversized_frames += 1

    def _line_end(self, last: bytes) -> JSONRPCMessage | None:
        if not self._held and self._dropping is None:
            if len(last) <= self.max_frame_bytes:
                return self._parse(last)
            self.oversized_frames += 1
            return self._too_large(last[:_EDGE_BYTES], last[-_EDGE_BYTES:])
        failure = self._hold(last)
        if self._dropping is not None:
            return self._end_of(self._dropping) or failure
        line, self._held = self._held, bytearray()
        return self._parse(line)

    def _end_of(self, dropped: _Dropped) -> JSONRPCMessage | None:
        self._dropping = None
        if dropped.size > self.max_frame_bytes:
            return None if dropped.is_answered else self._too_large(dropped.head, dropped.tail)
        self._count_junk()
        return self._failed_answer(dropped.head, dropped.tail, _NO_OBJECT)

    def _too_large(self, head: bytes, tail: bytes) -> JSONRPCMessage | None:
        return self._failed_answer(head, tail, f"its answer is larger than {self.max_frame_bytes} bytes")

    def held(self, *, all_of_it: bool = False) -> Iterator[JSONRPCMessage]:
        """The notices that were kept for later and may be read now."""
        for line in self.limits.take_held(all_of_it=all_of_it):
            if (message := self._loaded(line)) is not None:
                yield message

    def _parse(self, line: bytes | bytearray) -> JSONRPCMessage | None:
        if self.limits.leaves_unread(line):
            self._leave_unread(line)
            return None
        begun = line.lstrip()[:1]
        if begun == b"{" and _may_be_message(line):
            return self._loaded(line)
        if not begun:
            return None
        self._leave_unread(line)
        self.junk_lines += 1
        return self._failed_answer(bytes(line[:_EDGE_BYTES]), bytes(line[-_EDGE_BYTES:]), _NO_OBJECT)

    def _leave_unread(self, line: bytes | bytearray) -> None:
        self.effort += _UNREAD_LINE + len(line) / _UNREAD_BYTES

    def _loaded(self, line: bytes | bytearray) -> JSONRPCMessage | None:
        try:
            frame = loads(line)
        except ValueError as broken:
            return self._broken(line, broken)
        return self._understood(frame)

    def _broken(self, line: bytes | bytearray, broken: ValueError) -> JSONRPCMessage | None:
        self._count_junk()
        head, tail = bytes(line[:_EDGE_BYTES]), bytes(line[-_EDGE_BYTES:])
        return self._failed_answer(head, tail, f"its answer is not JSON: {broken}")

    def _understood(self, frame: Any) -> JSONRPCMessage | None:
        message = self._message(cast("dict[str, Any]", frame)) if isinstance(frame, dict) else None
        if message is None:
            self._count_junk()
        return message

    def _count_junk(self) -> None:
        self.junk_lines += 1
        self.effort += 1.0

    def _message(self, frame: dict[str, Any]) -> JSONRPCMessage | None:
        # `model_construct` skips validation of what is checked right here: an answer costs a third of the time.
        request_id = frame.get("id")
        if "method" in frame:
            method, params = frame["method"], frame.get("params")
            if not isinstance(method, str) or not (params is None or isinstance(params, dict)):
                return None
            if request_id is None:
                self.limits.took(method)
                return JSONRPCNotification.model_construct(jsonrpc="2.0", method=method, params=params)
            if not _is_id(request_id):
                return None
            return JSONRPCRequest.model_construct(jsonrpc="2.0", id=request_id, method=method, params=params)
        if not _is_id(request_id):
            return None
        result = frame.get("result")
        if isinstance(result, dict) and "error" not in frame:
            return JSONRPCResponse.model_construct(jsonrpc="2.0", id=request_id, result=result)
        error = frame.get("error")
        if isinstance(error, dict) and "result" not in frame:
            described = cast("dict[str, Any]", error)
            code, text = described.get("code"), described.get("message")
            if isinstance(code, int) and not isinstance(code, bool):
                return JSONRPCError(
                    jsonrpc="2.0",
                    id=request_id,
                    error=ErrorData(
                        code=code, message=text if isinstance(text, str) else "", data=described.get("data")
                    ),
                )
        if "result" in frame or "error" in frame:
            return self._malformed(request_id, "its answer is neither a result object nor a JSON-RPC error")
        return None

    def _failed_answer(self, head: bytes, tail: bytes, why: str) -> JSONRPCMessage | None:
        found = _ID_FIRST.match(head) or _ID_LAST.search(tail)
        if found is None:
            return None
        return self._malformed(int(next(group for group in found.groups() if group is not None)), why)

    def _malformed(self, request_id: Any, why: str) -> JSONRPCError:
        data = self.marks.mark(Fault(FaultKind.MALFORMED, why))
        return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=INTERNAL_ERROR, message=why, data=data))


def loads(line: bytes | bytearray) -> Any:
    """What a whole frame says. Raises `ValueError`."""
    is_large = len(line) >= _LARGE_BYTES and gc.isenabled()
    if is_large:
        # It holds no garbage, and a full collection looks at each of its parts while all wait.
        gc.disable()
    try:
        return from_json(line)
    except ValueError:
        # The fast parser refuses lone surrogates, which JavaScript writes.
        if line.lstrip()[:1] != b"{":
            raise
        try:
            return _loads_surrogates(line)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
    finally:
        if is_large:
            gc.enable()


def _loads_surrogates(line: bytes | bytearray) -> Any:
    """A notice or a question goes on to clients as it is, whose readers would refuse all of it for a lone surrogate.

    An answer is repaired when its client gets it: a name in it is sent to its upstream again.
    """
    frame: Any = json.loads(str(line, "utf-8", "surrogatepass"))
    if isinstance(frame, dict) and "method" in frame and "params" in frame:
        members = cast("dict[str, Any]", frame)
        return {**members, "params": with_escaped_surrogates(members["params"])}
    return cast("Any", frame)


def _may_be_message(line: bytes | bytearray) -> bool:
    """Whether it has an id or a method. Log lines are objects too, and a server may write very many of them."""
    return b'"id"' in line or b'"method"' in line or b"\\" in line


def _is_id(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def encode_frame(message: JSONRPCMessage) -> bytes:
    """A message as one line."""
    if isinstance(message, JSONRPCRequest | JSONRPCNotification):
        frame: dict[str, Any] = {"jsonrpc": "2.0", "method": message.method}
        if isinstance(message, JSONRPCRequest):
            frame["id"] = message.id
        if message.params is not None:
            frame["params"] = message.params
        return encode(frame)
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


def encode(frame: dict[str, Any]) -> bytes:
    """A message's members as one line."""
    try:
        return to_json(frame) + b"\n"
    except ValueError:
        # A lone surrogate: no UTF-8 carries it, a JSON escape does.
        return json.dumps(frame).encode() + b"\n"
