"""A model behind an OpenAI-compatible address that says what a test scripted. It thinks nothing and keeps what it was
asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

BACKEND_KEY = "example-key-of-the-scripted-backend"
MODEL = "scripted"
HOLD_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Asked:
    """One chat completion as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]


@dataclass(frozen=True)
class Says:
    """The model answers with text."""

    text: str
    input_tokens: int = 10
    output_tokens: int = 5
    finish_reason: str = "stop"


@dataclass(frozen=True)
class ToolCall:
    """`arguments` as text is sent as it is, to be wrong on purpose."""

    name: str
    arguments: Mapping[str, Any] | str
    id: str = ""

    def wire(self, number: int) -> dict[str, Any]:
        arguments = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)
        function = {"name": self.name, "arguments": arguments}
        return {"id": self.id or f"call_{number}", "type": "function", "function": function}


@dataclass(frozen=True)
class Calls:
    """The model calls tools. `more` are members of the message that are no part of OpenAI's format."""

    calls: tuple[ToolCall, ...]
    text: str | None = None
    input_tokens: int = 10
    output_tokens: int = 5
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Fails:
    """The endpoint fails."""

    status: int
    message: str = "scripted failure"
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Body:
    """The endpoint answers with exactly these bytes."""

    content: bytes
    content_type: str = "application/json"
    status: int = 200


@dataclass(frozen=True)
class Held:
    """The model takes its time: until the test sets `release`, or the client has gone."""

    answer: Says | Calls
    release: threading.Event = field(default_factory=threading.Event)
    arrived: threading.Event = field(default_factory=threading.Event)
    """Set by the backend when the question is there."""


Answer = Says | Calls | Fails | Body | Held


def calls(name: str, **arguments: Any) -> Calls:
    """One tool call, with its arguments."""
    return Calls((ToolCall(name, arguments),))


class ScriptedBackend:
    """Listens on a free port of this machine. `script` what it answers, in order; `asked` is what it was asked.

    A question that nothing was scripted for is answered with status 500 and says so.
    """

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self._script: list[Answer] = []
        self._by_question: Callable[[Asked], Answer | None] | None = None
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), partial(_Handler, self))

    @property
    def url(self) -> str:
        """What an OpenAI client calls its base URL."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    @property
    def unsaid(self) -> int:
        """How many scripted answers nobody has asked for yet."""
        return len(self._script)

    def script(self, *answers: Answer) -> None:
        """Answer the next questions so, in the order they come."""
        with self._lock:
            self._script.extend(answers)

    def answer_by(self, choose: Callable[[Asked], Answer | None]) -> None:
        """Answer by what is asked, for several conversations at a time; None leaves it to the script."""
        self._by_question = choose

    def forget(self) -> None:
        """Begin again, for another test."""
        with self._lock:
            self._script.clear()
            self.asked.clear()
            self._by_question = None

    @contextmanager
    def running(self) -> Generator[ScriptedBackend]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()

    def next_answer(self, asked: Asked) -> Answer:
        chosen = self._by_question(asked) if self._by_question is not None else None
        with self._lock:
            self.asked.append(asked)
            if chosen is not None:
                return chosen
            return self._script.pop(0) if self._script else Fails(500, "nothing is scripted for this question")


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hung up is none of the test's business."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, backend: ScriptedBackend, *connection: Any) -> None:
        self.backend = backend
        super().__init__(*connection)

    def do_GET(self) -> None:
        self._send(200, {"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "tests"}]})

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        if self.headers["authorization"] != f"Bearer {BACKEND_KEY}":
            self._send(401, {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}})
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        asked = Asked(self.path, headers, json.loads(content))
        answer = self.backend.next_answer(asked)
        if isinstance(answer, Held):
            answer.arrived.set()
            answer.release.wait(HOLD_TIMEOUT_S)
            answer = answer.answer
        match answer:
            case Fails(status, message, headers):
                self._send(status, {"error": {"message": message, "type": "scripted", "code": str(status)}}, headers)
            case Body(content, content_type, status):
                self._send_bytes(status, content, {"content-type": content_type})
            case Says() | Calls():
                self._send(200, _completion(answer, str(asked.body.get("model", MODEL))))

    def _send(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self._send_bytes(status, json.dumps(body).encode(), {"content-type": "application/json", **(headers or {})})

    def _send_bytes(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """What was asked is in `asked`."""


def _completion(answer: Says | Calls, model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text}
    if isinstance(answer, Says):
        finish_reason = answer.finish_reason
    else:
        finish_reason = "tool_calls"
        message["tool_calls"] = [call.wire(number) for number, call in enumerate(answer.calls)]
        message.update(answer.more)
    used = {"prompt_tokens": answer.input_tokens, "completion_tokens": answer.output_tokens}
    return {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 1,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": finish_reason}],
        "usage": {**used, "total_tokens": answer.input_tokens + answer.output_tokens},
    }
