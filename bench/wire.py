"""A stdio MCP client of as little code as possible: frames in, frames out, blocking, nothing checked."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, cast

Era = Literal["handshake", "modern"]
ANSWER_TIMEOUT_S = 90.0
END_TIMEOUT_S = 15.0
MODERN_REVISION = "2026-07-28"
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN_REVISION,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HANDSHAKE_PARAMS: Mapping[str, Any] = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


class WireFailure(Exception):
    """The server ended, stayed silent or answered with an error."""


@dataclass
class WireClient:
    """One server process and the pipes to it. Leaving the block closes its stdin, as a client would."""

    command: Sequence[str]
    env: Mapping[str, str]
    era: Era = "handshake"
    stderr: Path | None = None
    cwd: Path | None = None
    _buffer: bytearray = field(default_factory=bytearray)
    _last_id: int = 0

    def __enter__(self) -> Self:
        target = self.stderr.open("ab") if self.stderr is not None else None
        try:
            self.process = subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=target or subprocess.DEVNULL,
                env=self.env,
                cwd=self.cwd,
                bufsize=0,
            )
        finally:
            if target is not None:
                target.close()
        assert self.process.stdin is not None and self.process.stdout is not None
        self._to, self._from = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._poll = select.poll()
        self._poll.register(self._from, select.POLLIN | select.POLLHUP)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(END_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def open(self) -> None:
        """Open the session the way the era has it."""
        if self.era == "modern":
            self.request("server/discover", {})
            return
        self.request("initialize", HANDSHAKE_PARAMS)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def list_tools(self) -> list[dict[str, Any]]:
        return self.request("tools/list", {})["tools"]

    def call(self, tool: str, arguments: Mapping[str, object]) -> str:
        """The text of a call's result. Raises `WireFailure` where the tool failed."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        text = "\n".join(block.get("text", "") for block in result["content"])
        if result.get("isError"):
            raise WireFailure(f"{tool} failed: {text}")
        return text

    def call_many(self, tool: str, arguments: Mapping[str, object], *, total: int, at_once: int) -> None:
        """`total` calls, `at_once` of them open at any time. Raises `WireFailure` where one failed."""
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if self.era == "modern":
            params["_meta"] = MODERN_META
        first = self._last_id + 1
        self._last_id += total
        to_send = iter(range(first, first + total))
        open_ids: set[int] = set()

        def send_next() -> None:
            if (number := next(to_send, None)) is not None:
                open_ids.add(number)
                self._send({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})

        for _ in range(at_once):
            send_next()
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while open_ids:
            message = json.loads(self._line(deadline))
            if "method" in message or message.get("id") not in open_ids:
                continue
            if "error" in message or message["result"].get("isError"):
                raise WireFailure(f"{tool} failed: {message}")
            open_ids.remove(message["id"])
            send_next()

    def post(self, tool: str, arguments: Mapping[str, object]) -> None:
        """A call whose answer nobody waits for: it is dropped when it comes."""
        self._last_id += 1
        params: dict[str, Any] = {"name": tool, "arguments": arguments}
        if self.era == "modern":
            params["_meta"] = MODERN_META
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": "tools/call", "params": params})

    def request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """The result of one request; notifications that come meanwhile are dropped."""
        self._last_id += 1
        if self.era == "modern":
            params = {**params, "_meta": MODERN_META}
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        deadline = time.monotonic() + ANSWER_TIMEOUT_S
        while True:
            message = json.loads(self._line(deadline))
            if message.get("id") != self._last_id or "method" in message:
                continue
            if "error" in message:
                raise WireFailure(f"{method}: {message['error']}")
            return cast("dict[str, Any]", message["result"])

    def _send(self, message: Mapping[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self._to, data) :]

    def _line(self, deadline: float) -> bytes:
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if not self._poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise WireFailure(f"no answer within {ANSWER_TIMEOUT_S:.0f} s")
            chunk = os.read(self._from, 1 << 20)
            if not chunk:
                raise WireFailure(f"the server ended; its stderr:\n{self._last_words()}")
            self._buffer += chunk
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _last_words(self) -> str:
        if self.stderr is None or not self.stderr.exists():
            return "not kept"
        return self.stderr.read_text(encoding="utf-8", errors="replace")[-600:]
