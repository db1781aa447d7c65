"""Metrics: one table of those that Raybus counts, in the Prometheus client's default registry, and the page of all."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from prometheus_client import Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_RECONCILE_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5),
    *(1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
"""Those of controller-runtime, for dashboards made for KubeRay (contract platform §7.2)."""

DECISIONS = Counter("raybus_decisions_total", "Decisions made, by controller and outcome.", ["controller", "outcome"])
DECIDE_SECONDS = Histogram("raybus_decide_seconds", "Time of gather and decide.", ["controller"], buckets=_SECONDS)
OWNED = Gauge("raybus_partitions_owned", "Partitions that this replica owns.", ["service"])
BAD_MESSAGES = Counter("raybus_bad_messages_total", "Messages that could not be read.", ["service", "kind"])
NEWER_MESSAGES = Counter(
    "raybus_newer_messages_total",
    "Messages left alone because only a later release can read them.",
    ["service", "stream"],
)
RESETS = Counter("raybus_cache_resets_total", "Times a partition's cache was loaded anew.", ["service"])

WATCH_EVENTS = Counter("raybus_watch_events_total", "Events of the watches, by kind and event.", ["kind", "event"])
WATCH_SERVED = Gauge("raybus_watch_served", "1 while the API server serves the kind, 0 while it does not.", ["kind"])
VIEW_WRITES = Counter(
    "raybus_view_writes_total", "What became of states offered to VIEW: written, equal, older, conflict.", ["outcome"]
)
VIEW_WAITING = Gauge("raybus_view_waiting", "Subjects of VIEW that wait to be written.")
VIEW_SECONDS = Histogram(
    "raybus_view_seconds", "From an event of a watch to its acknowledged message.", buckets=_SECONDS
)
WINDOW = Gauge("raybus_applier_window", "Requests to the API server that may be under way at once, at present.")

RECONCILES = Counter(
    "controller_runtime_reconcile_total",
    "Times that a root was looked at, by what came of it: success, requeue_after, error.",
    ["controller", "result"],
)
RECONCILE_ERRORS = Counter(
    "controller_runtime_reconcile_errors_total", "Times that looking at a root failed.", ["controller"]
)
RECONCILE_SECONDS = Histogram(
    "controller_runtime_reconcile_time_seconds",
    "Time from taking a root up to its published decision.",
    ["controller"],
    buckets=_RECONCILE_SECONDS,
)
REQUESTS = Counter(
    "rest_client_requests_total",
    "Requests to the API server; code <error> = no answer.",
    ["code", "method", "host"],
)
REQUEST_SECONDS = Histogram(
    "rest_client_request_duration_seconds",
    "Time of a request to the API server, of a watch until it begins.",
    ["verb", "host"],
    buckets=(0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0),
)


class Readings(NamedTuple):
    """A gauge that is read when the page is asked for. `samples`: (values of `labels`, value)."""

    name: str
    text: str
    labels: tuple[str, ...]
    samples: Iterable[tuple[tuple[str, ...], float]]


_readers: list[Callable[[], Iterable[Readings]]] = []


@contextmanager
def read_when_asked(read: Callable[[], Iterable[Readings]]) -> Iterator[None]:
    """As long as this context lasts, the page also shows what `read` returns, called once per request for the page."""
    _readers.append(read)
    try:
        yield
    finally:
        _readers.remove(read)


def exposition() -> bytes:
    """The text format of all metrics, the body of `/metrics`."""
    return generate_latest() + "".join(_family(readings) for read in _readers for readings in read()).encode()


def _family(readings: Readings) -> str:
    """One gauge in the text format, "" without samples.

    Written by ourselves: there is a line for each root, and the client needs four times as long for one (ADR 0132).
    """
    places = sorted(range(len(readings.labels)), key=readings.labels.__getitem__)
    inside = ",".join(f'{readings.labels[place]}="%s"' for place in places)
    line = f"{readings.name}{{{inside}}} %s\n" if inside else f"{readings.name} %s\n"
    lines = [
        line % (*[_escaped(values[place]) for place in places], int(value) if value.is_integer() else value)
        for values, value in readings.samples
    ]
    head = f"# HELP {readings.name} {readings.text}\n# TYPE {readings.name} gauge\n"
    return head + "".join(lines) if lines else ""


def _escaped(value: str) -> str:
    plain = '"' not in value and "\\" not in value and "\n" not in value
    return value if plain else value.translate(_ESCAPES)


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})
