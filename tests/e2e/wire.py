"""A client that speaks raw frames over stdio: every byte of stdout is seen, also what no SDK would show."""

from __future__ import annotations

import json
import queue
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.e2e.processes import end

FRAME_TIMEOUT_S = 60.0
LISTED_WITHIN_S = 60.0
PROTOCOL_VERSION = "2025-11-25"


class Wire:
    """One process behind raw frames. `lines` holds what it wrote to stdout, decoded or not, in order."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str], directory: Path, log: Path | None = None
    ) -> None:
        self.lines: list[bytes] = []
        self._arrived = queue.Queue[bytes | None]()
        self._answers: dict[Any, dict[str, Any]] = {}
        self.notices: list[dict[str, Any]] = []
        self._last_id = 0
        self._log = (log or Path("/dev/null")).open("ab")
        self.process = subprocess.Popen(
            command, env=environment, cwd=directory, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        threading.Thread(target=self._read, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        end(self.process)  # pyright: ignore[reportArgumentType]  # bytes or text makes no difference to ending it
        self._log.close()

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})

    def start(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request; its id."""
        self._last_id += 1
        self.send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": dict(params or {})})
        return self._last_id

    def answer(self, request_id: Any, timeout_s: float = FRAME_TIMEOUT_S) -> dict[str, Any]:
        """The whole answer to a request, result or error."""
        ends_at_s = time.monotonic() + timeout_s
        while request_id not in self._answers:
            self.next_message(ends_at_s - time.monotonic())
        return self._answers.pop(request_id)

    def next_message(self, timeout_s: float = FRAME_TIMEOUT_S) -> dict[str, Any]:
        """The next frame, which must be a JSON object."""
        line = self._arrived.get(timeout=max(0.01, timeout_s))
        assert line is not None, f"stdout ended; exit code {self.process.wait(10)}"
        message: dict[str, Any] = json.loads(line)
        assert message.get("jsonrpc") == "2.0", line
        if "method" in message:
            self.notices.append(message)
        else:
            self._answers[message.get("id")] = message
        return message

    def request(
        self, method: str, params: Mapping[str, Any] | None = None, timeout_s: float = FRAME_TIMEOUT_S
    ) -> dict[str, Any]:
        return self.answer(self.start(method, params), timeout_s)

    def is_answered(self, request_id: Any) -> bool:
        """Whether its answer has come, among all that was sent before the last answer that was read."""
        return request_id in self._answers

    def listed_with(self, *wanted: str) -> list[str]:
        """The names of the tools, once those wanted are among them: a slow server's miss the first list (LIF-2)."""
        ends_at_s = time.monotonic() + LISTED_WITHIN_S
        while True:
            names = [tool["name"] for tool in self.request("tools/list")["result"]["tools"]]
            if set(wanted) <= set(names):
                return names
            assert time.monotonic() < ends_at_s, f"{sorted(set(wanted) - set(names))} are not listed"
            time.sleep(0.1)

    def handshake(self, name: str = "e2e-wire", version: str = "1.0.0") -> dict[str, Any]:
        client = {"name": name, "version": version}
        params = {"protocolVersion": PROTOCOL_VERSION, "capabilities": {}, "clientInfo": client}
        answer = self.request("initialize", params)
        self.notify("notifications/initialized")
        return answer["result"]

    def call(self, tool: str, arguments: Mapping[str, Any], timeout_s: float = FRAME_TIMEOUT_S) -> dict[str, Any]:
        """The result of a tool call; a JSON-RPC error fails the test."""
        answer = self.request("tools/call", {"name": tool, "arguments": dict(arguments)}, timeout_s)
        assert "result" in answer, answer
        return answer["result"]

    def text(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """The text of a call that must succeed."""
        result = self.call(tool, arguments)
        assert not result.get("isError"), result
        return text_of(result)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            self._arrived.put(line)
        self._arrived.put(None)


def text_of(result: Mapping[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"] if block["type"] == "text")
