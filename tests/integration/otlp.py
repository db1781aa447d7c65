"""A receiver of traces in memory: what an OpenTelemetry collector gets over OTLP/HTTP."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)


class Span(NamedTuple):
    """One span; ids in hexadecimal, `parent` "" for a root. `attributes`: texts and numbers as texts."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    failed: bool
    attributes: dict[str, str]


class Receiver:
    """`spans`: all that has arrived; `refused`: posts that were no traces."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.refused: list[str] = []

    def trace(self, trace: str) -> list[Span]:
        """The spans of one trace."""
        return [span for span in self.spans if span.trace == trace]

    @contextmanager
    def serve(self) -> Iterator[str]:
        """Receive while the block runs; yields the endpoint."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                if self.path == "/v1/traces":
                    receiver.spans += read_spans(ExportTraceServiceRequest.FromString(body))
                else:
                    receiver.refused.append(self.path)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
            server.server_close()


def read_spans(request: ExportTraceServiceRequest) -> Iterator[Span]:
    """The spans of one export."""
    for resource in request.resource_spans:
        service = next(a.value.string_value for a in resource.resource.attributes if a.key == "service.name")
        for scope in resource.scope_spans:
            for span in scope.spans:
                attributes = {a.key: a.value.string_value or str(a.value.int_value) for a in span.attributes}
                ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
                yield Span(service, span.name, *ids, span.status.code == span.status.STATUS_CODE_ERROR, attributes)
