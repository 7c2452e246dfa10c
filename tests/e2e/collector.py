"""A collector of OpenTelemetry spans on loopback, which keeps what it is sent."""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

WITHIN_S = 30.0


@dataclass(frozen=True)
class Span:
    name: str
    trace_id: str
    span_id: str
    parent_id: str
    kind: int
    attributes: dict[str, Any]
    process: int


@dataclass
class Collector:
    url: str = ""
    spans: list[Span] = field(default_factory=list[Span])

    def take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        for of_process in request.resource_spans:
            resource = {one.key: one.value for one in of_process.resource.attributes}
            for scope in of_process.scope_spans:
                for span in scope.spans:
                    attributes = {one.key: one.value.string_value or one.value.int_value for one in span.attributes}
                    self.spans.append(
                        Span(
                            span.name,
                            span.trace_id.hex(),
                            span.span_id.hex(),
                            span.parent_span_id.hex(),
                            span.kind,
                            attributes,
                            resource["process.pid"].int_value if "process.pid" in resource else 0,
                        )
                    )

    def wait_for(self, *names: str) -> list[Span]:
        """Those of these names, in this order, once each has come. The first of each name."""
        ends_at_s = time.monotonic() + WITHIN_S
        while time.monotonic() < ends_at_s:
            by_name = {span.name: span for span in reversed(self.spans)}
            if all(name in by_name for name in names):
                return [by_name[name] for name in names]
            time.sleep(0.05)
        raise AssertionError(f"no spans {names} among {[span.name for span in self.spans]}")


@contextmanager
def collecting() -> Generator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                import gzip

                body = gzip.decompress(body)
            collector.take(body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing on stderr."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield collector
    finally:
        server.shutdown()
        server.server_close()
