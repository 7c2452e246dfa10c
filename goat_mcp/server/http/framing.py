"""HTTP/1 messages with one meaning only: h11, without what it is lenient about (RFC 9112, 6.1).

What another program in front of us could read differently is 400, and the connection ends.
"""

from __future__ import annotations

import re
from typing import Any

import h11
from h11._receivebuffer import ReceiveBuffer  # h11 has no other door to the lines it reads

_CLOSE = (b"connection", b"close")
_AMBIGUOUS_LINES = re.compile(rb"\n[ \t]|(?<!\r)\n|\r(?=[^\n])|\x00")
"""A folded header, lines that end with half a line end, and what some take for the end of a text."""


class _StrictLines(ReceiveBuffer):
    """Where h11 takes its lines from: heads, sizes of chunks, and trailers."""

    def maybe_extract_next_line(self) -> bytearray | None:
        line = super().maybe_extract_next_line()
        if line is not None and _AMBIGUOUS_LINES.search(line):
            raise h11.RemoteProtocolError("incomplete line end in the size of a chunk")
        return line

    def maybe_extract_lines(self) -> list[bytearray] | None:
        if not self._data.startswith(b"\r\n"):
            end = self._data.find(b"\r\n\r\n")
            if _AMBIGUOUS_LINES.search(self._data, 0, end if end >= 0 else len(self._data)):
                raise h11.RemoteProtocolError("folded header or incomplete line end")
        return super().maybe_extract_lines()


class StrictConnection(h11.Connection):
    """The server's side of one connection."""

    is_authorized = False
    """Whether the request in progress has shown a token, or needs none."""

    is_refused = False
    """Whether the request cannot be read any further."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER)
        self._receive_buffer = _StrictLines()

    @property
    def owes_body(self) -> bool:
        """Whether the client may still be sending what nobody will read."""
        return self.is_refused or self.their_state is h11.SEND_BODY

    def next_event(self) -> Any:
        try:
            return self._next_event()
        except h11.RemoteProtocolError:
            self.is_refused = True
            raise

    def _next_event(self) -> Any:
        event = super().next_event()
        if isinstance(event, h11.Request):
            self.is_authorized = False
            names = {name for name, _ in event.headers}
            if event.http_version not in (b"1.0", b"1.1"):
                raise h11.RemoteProtocolError("unknown HTTP version")
            if b"transfer-encoding" in names and (b"content-length" in names or event.http_version == b"1.0"):
                raise h11.RemoteProtocolError("Transfer-Encoding beside Content-Length, or in HTTP/1.0")
        return event

    def send(self, event: Any) -> Any:
        if isinstance(event, h11.Response) and (self.owes_body or not self.is_authorized):
            kept = [(name, value) for name, value in event.headers if name != b"connection"]
            event = h11.Response(status_code=event.status_code, headers=[*kept, _CLOSE], reason=event.reason)
        return super().send(event)
