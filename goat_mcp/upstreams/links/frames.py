"""The wire of a stdio upstream: lines of bytes in, JSON-RPC messages out, with a bound on everything.

Contract: R-UP-2, R-UP-3, REL-4. No processes and no event loop here.
"""

from __future__ import annotations

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

from goat_mcp.upstreams.faults import Fault, FaultKind, FaultMarks

MAX_FRAME_BYTES = 16 * 1024 * 1024
_EDGE_BYTES = 512
"""Of a frame that is dropped we keep this much of each end, to learn whose answer it was."""
_ID = rb'"id"\s*:\s*(\d{1,15})\s*'
_ID_FIRST = re.compile(rb'\s*\{\s*"jsonrpc"\s*:\s*"2\.0"\s*,\s*' + _ID)
_ID_LAST = re.compile(
    rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*' + _ID + rb"|" + _ID + rb',\s*"jsonrpc"\s*:\s*"2\.0"\s*)\}\s*\Z'
)


@dataclass
class FrameReader:
    """Cuts a byte stream into frames and parses them. Junk is counted and dropped, never raised.

    An answer that is too large or broken fails the request it answers where its id can still be read.
    """

    marks: FaultMarks
    max_frame_bytes: int = MAX_FRAME_BYTES
    junk_lines: int = 0
    oversized_frames: int = 0
    _parts: list[bytes] = field(default_factory=list[bytes])
    _held: int = 0
    _dropped_head: bytes = b""
    _dropped_tail: bytes = b""
    _dropping: bool = False

    @property
    def is_dropping(self) -> bool:
        """Whether what arrives belongs to a frame that is too large already."""
        return self._dropping

    def feed(self, data: bytes) -> Iterator[JSONRPCMessage]:
        """The messages that `data` completes."""
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            message = self._line_end(data[start:end])
            if message is not None:
                yield message
            start = end + 1
        if start < len(data):
            self._hold(data[start:] if start else data)

    def _hold(self, part: bytes) -> None:
        if self._dropping:
            self._dropped_tail = (self._dropped_tail + part[-_EDGE_BYTES:])[-_EDGE_BYTES:]
            return
        self._parts.append(part)
        self._held += len(part)
        if self._held > self.max_frame_bytes:
            self._start_dropping()

    def _start_dropping(self) -> None:
        whole = b"".join(self._parts)
        self._dropping = True
        self._dropped_head, self._dropped_tail = whole[:_EDGE_BYTES], whole[-_EDGE_BYTES:]
        self._parts.clear()
        self._held = 0

    def _line_end(self, last: bytes) -> JSONRPCMessage | None:
        if self._parts or self._dropping:
            self._hold(last)
        elif len(last) <= self.max_frame_bytes:
            return self._parse(last)
        else:
            self._parts.append(last)
            self._start_dropping()
        if self._dropping:
            head, tail = self._dropped_head, self._dropped_tail
            self._dropping, self._dropped_head, self._dropped_tail = False, b"", b""
            self.oversized_frames += 1
            return self._failed_answer(head, tail, f"its answer is larger than {self.max_frame_bytes} bytes")
        line = b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        return self._parse(line)

    def _parse(self, line: bytes) -> JSONRPCMessage | None:
        if not line or line.isspace():
            return None
        try:
            frame = _loads(line)
        except ValueError as broken:
            self.junk_lines += 1
            return self._failed_answer(line[:_EDGE_BYTES], line[-_EDGE_BYTES:], f"its answer is not JSON: {broken}")
        message = self._message(cast("dict[str, Any]", frame)) if isinstance(frame, dict) else None
        if message is None:
            self.junk_lines += 1
        return message

    def _message(self, frame: dict[str, Any]) -> JSONRPCMessage | None:
        # `model_construct` skips validation of what is checked right here: an answer costs a third of the time.
        request_id = frame.get("id")
        if "method" in frame:
            method, params = frame["method"], frame.get("params")
            if not isinstance(method, str) or not (params is None or isinstance(params, dict)):
                return None
            if request_id is None:
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


def _loads(line: bytes) -> Any:
    try:
        return from_json(line)
    except ValueError:
        if line[:1] != b"{":
            raise
        # The slow parser knows what the fast one refuses: lone surrogates, which JavaScript writes.
        try:
            return json.loads(line)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None


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
        try:
            return to_json(frame) + b"\n"
        except ValueError:
            # A lone surrogate: no UTF-8 carries it, a JSON escape does.
            return json.dumps(frame).encode() + b"\n"
    return message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
