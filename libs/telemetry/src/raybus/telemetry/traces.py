"""Traces: one trace for all that happens to a RayJob, or to one generation of another root (ADR 0003).

Off unless `OTEL_EXPORTER_OTLP_ENDPOINT` is set; then the SDK is not even imported. Context travels as W3C
`traceparent` in message headers. The trace id is a hash of the root's identity, so that every service puts its
spans into the same trace without asking anyone, also after a restart.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Tracer

HEADER = "traceparent"

_tracer: "Tracer | None" = None
_provider: "TracerProvider | None" = None


def configure_traces(service: str) -> bool:
    """Start exporting spans over OTLP/HTTP if `OTEL_EXPORTER_OTLP_ENDPOINT` is set; says whether it is."""
    global _tracer, _provider
    if not os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT"):
        return False
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=Resource.create({"service.name": f"raybus-{service}"}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=1000))
    _provider, _tracer = provider, provider.get_tracer("raybus")
    return True


def flush_traces() -> None:
    """Send what is still buffered; at shutdown."""
    if _provider is not None:
        _provider.shutdown()


def enabled() -> bool:
    """Whether spans are exported."""
    return _tracer is not None


def root_parent(seed: str) -> dict[str, str]:
    """Headers that put a span into the trace of `seed` (a root's UID, or UID and generation) without another parent."""
    if _tracer is None:
        return {}
    digest = hashlib.blake2s(seed.encode(), digest_size=24).hexdigest()
    return {HEADER: f"00-{digest[:32]}-{digest[32:]}-01"}


class _Off:
    """The span while tracing is off: each request has some, so it costs next to nothing."""

    def __enter__(self) -> dict[str, str]:
        return {}

    def __exit__(self, *_: object) -> None:
        return None


_OFF = _Off()


def span(
    name: str, parent: Mapping[str, str] | None = None, attributes: Mapping[str, Any] | None = None
) -> AbstractContextManager[dict[str, str]]:
    """A span around the block, child of `parent`'s `traceparent` or else of the span around this one.

    Yields the headers (`traceparent`) to hand on to whoever continues the trace; {} while tracing is off. An
    exception leaves the span with error status and goes on.
    """
    return _OFF if _tracer is None else _span(_tracer, name, parent, attributes)


@contextmanager
def _span(
    tracer: "Tracer", name: str, parent: Mapping[str, str] | None, attributes: Mapping[str, Any] | None
) -> Iterator[dict[str, str]]:
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    propagator = TraceContextTextMapPropagator()
    context = propagator.extract(dict(parent)) if parent and HEADER in parent else None
    with tracer.start_as_current_span(name, context=context, attributes=dict(attributes or {})) as current:
        carrier: MutableMapping[str, str] = {}
        propagator.inject(carrier, set_span_in_context(current))
        yield dict(carrier)


def trace_id(headers: Mapping[str, str]) -> str:
    """The hexadecimal trace id in `headers`, "" without one."""
    parts = headers.get(HEADER, "").split("-")
    return parts[1] if len(parts) == 4 else ""
