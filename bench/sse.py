"""A client of the transport of 2024-11-05, of as little code as possible: events in, messages out, nothing checked."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.wire import ANSWER_TIMEOUT_S, HANDSHAKE_PARAMS, WireFailure

LOOK_AGAIN_S = 0.01


def sse_client(port: int, process: subprocess.Popen[bytes]) -> SseClient:
    """A client of a server that is starting. Raises `WireFailure` if it does not answer."""
    deadline = time.monotonic() + ANSWER_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            return SseClient(port)
        except (OSError, http.client.HTTPException):
            time.sleep(LOOK_AGAIN_S)
    raise WireFailure(f"nothing answers on port {port}")


@dataclass
class SseClient:
    """One session. Raises `OSError` and `HTTPException` if nobody takes it."""

    port: int
    _last_id: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._events = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_TIMEOUT_S)
        self._events.request("GET", "/mcp", headers={"Accept": "text/event-stream"})
        self._stream = self._events.getresponse()
        if self._stream.status != http.client.OK:
            self._events.close()
            raise http.client.HTTPException(f"status {self._stream.status}")
        self._endpoint = self._event()
        self._messages = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_TIMEOUT_S)
        self.request("initialize", {**HANDSHAKE_PARAMS, "protocolVersion": "2024-11-05"})
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def list_tools(self) -> list[dict[str, Any]]:
        return self.request("tools/list", {})["tools"]

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        self._post({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        while True:
            message = json.loads(self._event())
            if message.get("id") != self._last_id or "method" in message:
                continue
            if "error" in message:
                raise WireFailure(f"{method}: {message['error']}")
            return message["result"]

    def close(self) -> None:
        self._messages.close()
        self._stream.close()
        self._events.close()

    def _post(self, message: Mapping[str, Any]) -> None:
        self._messages.request(
            "POST", self._endpoint, json.dumps(message).encode(), {"Content-Type": "application/json"}
        )
        self._messages.getresponse().read()

    def _event(self) -> str:
        """The data of the next event."""
        data: list[str] = []
        while line := self._stream.readline():
            text = line.decode().rstrip("\r\n")
            if text.startswith("data:"):
                data.append(text[5:].lstrip())
            elif not text and data:
                return "\n".join(data)
        raise WireFailure("the stream of events ended")
