"""Replacing the server process in place: `exec` of the same command, with the client's pipes or the listening socket.

Hosts start a stdio server once and do not start it again when it ends (design 0023), so the process must not end: it is
replaced, and what the client had said in its handshake is said again to the new one, whose answer the client does not
see. Over HTTP the listening socket goes over, so that nobody is refused meanwhile; clients of the handshake era get
404 for their session and open another, those of 2026-07-28 notice nothing. The modes of sessions go over where they
are no wider than the settings. What else lived in memory (what was read, the shell's directory, subscriptions, open
questions) is gone. Not on Windows, which has no `exec`.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import mcp_types as types
from mcp.shared._context_streams import ContextSendStream
from mcp.shared.message import SessionMessage

from goat_mcp.core import platform, posix
from goat_mcp.core.restart import Restart
from goat_mcp.server.stdio.frame_writer import FrameWriter, OpenRequests

VARIABLE = "_GOAT_MCP_HANDOVER"
"""Names the descriptor of an unlinked file that holds what goes over."""
DRAIN_S = 10.0
"""How long calls that run are waited for."""
GREETING_S = 20.0
_ENDED = types.ErrorData(code=types.CONNECTION_CLOSED, message="the server started itself again; the call was ended")


@dataclass
class RestartHandoff:
    """What one process leaves to the next. `greeting` are the parameters of the client's `initialize`; `unread` is
    the beginning of a message whose rest is still to come."""

    greeting: Mapping[str, Any] | None = None
    unread: bytes = b""
    listener: int | None = None
    wire: tuple[int, int] | None = None
    modes: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of the sessions: one that was narrowed stays so."""
    restarts_s: Sequence[float] = ()
    """When there were some (`core.restart`)."""
    is_complete: bool = False
    """Whether there is all that it takes."""
    resume_id: str = field(default_factory=lambda: f"goat-resume-{secrets.token_hex(8)}")
    """The id under which the greeting is said again."""

    def note(self, message: object) -> None:
        """A message of the client, as it came."""
        if isinstance(message, dict):
            frame = cast("dict[str, Any]", message)
            if frame.get("method") == "initialize" and isinstance(frame.get("params"), dict):
                self.greeting = frame["params"]

    def keep_pipes(self, unread: bytes, wire_in: int, wire_out: int) -> None:
        """All that the next process needs over stdio."""
        self.unread = unread
        self.wire = (os.dup(wire_in), os.dup(wire_out))
        self.is_complete = True

    def keep_listener(self, listener: int) -> None:
        """All that the next process needs over HTTP."""
        self.listener = listener
        self.is_complete = True

    def replace_process(self, modes: Mapping[str, str], restarts_s: Sequence[float]) -> None:
        """Go on as the same command, in a new process. Returns only if that fails."""
        if signal.SIGTERM in posix.pending_signals():
            return  # somebody wants it to end
        if platform.HAS_SIGNAL_MASKS:
            posix.set_signal_mask(posix.SIG_UNBLOCK, {signal.SIGTERM})
        with tempfile.TemporaryFile() as file:
            kept = {
                "greeting": self.greeting,
                "unread": base64.b64encode(self.unread).decode(),
                "listener": self.listener,
                "modes": dict(modes),
                "restarts_s": list(restarts_s),
            }
            file.write(json.dumps(kept).encode())
            file.flush()
            os.set_inheritable(file.fileno(), True)
            if self.listener is not None:
                os.set_inheritable(self.listener, True)
            if self.wire is not None:
                os.dup2(self.wire[0], 0)
                os.dup2(self.wire[1], 1)
            os.environ[VARIABLE] = str(file.fileno())
            sys.stderr.flush()
            os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


@dataclass(frozen=True)
class StdioHandoff:
    """One process over stdio after another on the same pipes.

    `state` holds what the process before has left, and then what this one leaves. `end_streams` ends what
    would never be answered otherwise.
    """

    restart: Restart
    state: RestartHandoff
    end_streams: Callable[[], None]

    async def greet_again(self, inbound: ContextSendStream[SessionMessage | Exception], writer: FrameWriter) -> None:
        """Introduce the client whose handshake the process before has seen."""
        greeting = self.state.greeting
        if greeting is None:
            return
        request_id = self.state.resume_id
        answered = writer.keep_back(request_id)
        hello = types.JSONRPCRequest(jsonrpc="2.0", id=request_id, method="initialize", params=dict(greeting))
        await inbound.send(SessionMessage(hello))
        with anyio.move_on_after(GREETING_S):
            await answered.wait()
        ready = types.JSONRPCNotification(jsonrpc="2.0", method="notifications/initialized")
        await inbound.send(SessionMessage(ready))

    async def prepare(
        self, wire_in: int, wire_out: int, unread: bytes, requests: OpenRequests, writer: FrameWriter
    ) -> None:
        """Nothing more is read: answer what was, and keep the pipes."""
        self.end_streams()
        for request_id in await requests.all_closed(DRAIN_S):
            writer.post(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=_ENDED))
        await writer.flush()
        self.state.keep_pipes(unread, wire_in, wire_out)


def taken_over() -> RestartHandoff:
    """What the process before has left; an empty one where there was none."""
    named = os.environ.pop(VARIABLE, "")
    if not named.isdigit():
        return RestartHandoff()
    try:
        with os.fdopen(int(named), "rb") as file:
            file.seek(0)
            left: dict[str, Any] = json.load(file)
    except (OSError, ValueError):
        return RestartHandoff()
    return RestartHandoff(
        left["greeting"],
        base64.b64decode(left["unread"]),
        left["listener"],
        modes=left["modes"],
        restarts_s=left.get("restarts_s", ()),
    )


def is_possible() -> bool:
    """Windows has no `exec`: what it calls so is another process, whose parent has ended."""
    return platform.HAS_PROCESS_GROUPS
