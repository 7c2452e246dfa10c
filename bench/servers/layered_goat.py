"""goat-mcp with a watch on its main thread: between two signals it adds up where a call's time goes.

Arguments: where the result goes, then those of `goat-mcp`. SIGUSR1 begins, SIGUSR2 writes the result as JSON.
"""

from __future__ import annotations

import json
import signal
import sys
import time
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

LOOP, WAIT = "event loop", "waiting for others"
PACKAGE = "/goat_mcp/"
LAYERS: tuple[tuple[str, str], ...] = (
    ("server/stdio/frame_writer.py", "write to the client"),
    ("server/stdio/fast_path.py:FastPath._send", "write to the client"),
    ("server/plain_calls.py:PlainCalls.wire", "response"),
    ("server/stdio/fast_path.py:FastPath.takes", "read and parse the frame"),
    ("server/plain_calls.py:is_plain_call", "read and parse the frame"),
    ("server/plain_calls.py:has_plain_params", "read and parse the frame"),
    ("server/plain_calls.py:envelope_of", "read and parse the frame"),
    ("server/plain_calls.py", "dispatch"),
    ("server/stdio/fast_path.py", "dispatch"),
    ("server/stdio/", "read and parse the frame"),
    ("server/result_compatibility.py", "response"),
    ("core/result.py:ToolResult.wire", "response"),
    ("server/", "adapter and context"),
    ("gateway/", "adapter and context"),
    ("core/context.py", "adapter and context"),
    ("calls/meta_call.py", "catalog"),
    ("catalog/schemas/", "validation"),
    ("catalog/resource_catalog.py", "result checks"),
    ("catalog/", "catalog"),
    ("core/rights.py", "catalog"),
    ("core/arguments.py", "validation"),
    ("calls/admission.py:Admission._record", "audit, decision"),
    ("calls/admission.py:Admission._validated", "validation"),
    ("calls/admission.py", "permission"),
    ("calls/permissions/", "permission"),
    ("calls/hooks/", "hooks and extensions"),
    ("calls/extensions/", "hooks and extensions"),
    ("calls/pipeline.py:Pipeline._record_outcome", "audit, outcome"),
    ("calls/audit/call_record.py", "record for people"),
    ("calls/audit/shown_arguments.py", "record for people"),
    ("state/call_log.py", "record for people"),
    ("calls/scheduler.py", "scheduler"),
    ("calls/concurrency_limiter.py", "limiters"),
    ("core/concurrency_limiter.py", "limiters"),
    ("upstreams/calls/upstream_limiter.py", "limiters"),
    ("calls/result_limits.py", "result checks"),
    ("calls/pipeline.py", "pipeline"),
    ("calls/batch.py", "pipeline"),
    ("upstreams/listing/", "validation"),
    ("upstreams/pinning/", "pins"),
    ("upstreams/calls/output_check.py", "result checks"),
    ("upstreams/calls/visible_results.py", "result checks"),
    ("upstreams/calls/calls.py:relayed_result", "result checks"),
    ("upstreams/transports/child_pipes.py:Outbox", "write to the upstream"),
    ("upstreams/transports/child_pipes.py:ChildPipes.write", "write to the upstream"),
    ("upstreams/transports/child_pipes.py:ChildPipes", "read of the upstream"),
    ("upstreams/transports/frames.py:encode", "write to the upstream"),
    ("upstreams/transports/frames.py", "read of the upstream"),
    ("upstreams/connection_pool.py", "choice of a connection"),
    ("upstreams/supervisor.py", "choice of a connection"),
    ("upstreams/upstream.py", "choice of a connection"),
    ("upstreams/", "relay"),
)
"""The first that a function's file and name begin with. Files that no line names belong to whoever calls them."""


class Watch:
    """Gives the time between two calls or returns to the layer at work; its own time is nobody's."""

    def __init__(self, target: Path) -> None:
        self._target = target
        self._layers: dict[CodeType, str | None] = {}
        self._stack: list[str] = []
        self._now = LOOP
        self._since_ns = 0
        self._times_ns: dict[str, int] = {}
        self._functions: dict[str, int] = {}

    def begin(self, *_: Any) -> None:
        self._since_ns = time.thread_time_ns()
        sys.setprofile(self._note)

    def end(self, *_: Any) -> None:
        sys.setprofile(None)
        self._target.write_text(json.dumps({"times_ns": self._times_ns, "functions": self._functions}))

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "return"):
            return
        now = self._now
        self._times_ns[now] = self._times_ns.get(now, 0) + time.thread_time_ns() - self._since_ns
        if event == "call":
            self._stack.append(now)
            code = frame.f_code
            if code not in self._layers:
                self._layers[code] = _layer_of(code)
            self._now = self._layers[code] or now
            if self._now != WAIT or self._layers[code] == WAIT:  # one for each turn of the event loop
                self._functions[self._now] = self._functions.get(self._now, 0) + 1
        else:
            self._now = self._stack.pop() if self._stack else LOOP
        self._since_ns = time.thread_time_ns()


def _layer_of(code: CodeType) -> str | None:
    """None for what works for its caller."""
    if code.co_filename.endswith("/selectors.py") and code.co_name == "select":
        return WAIT
    if code.co_filename.endswith("/asyncio/base_events.py") and code.co_name == "_run_once":
        return LOOP
    _, _, own = code.co_filename.rpartition(PACKAGE)
    if own == code.co_filename:
        return None
    name = f"{own}:{code.co_qualname}"
    return next((layer for start, layer in LAYERS if name.startswith(start)), None)


def main() -> None:
    target, *arguments = sys.argv[1:]
    watch = Watch(Path(target))
    signal.signal(signal.SIGUSR1, watch.begin)
    signal.signal(signal.SIGUSR2, watch.end)
    sys.argv = ["goat-mcp", *arguments]
    from goat_mcp.cli.main import main as goat

    goat()


if __name__ == "__main__":
    main()
