"""Metrics: one table of every metric that Raybus exports, in the Prometheus client's default registry."""

from prometheus_client import Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

DECISIONS = Counter("raybus_decisions_total", "Decisions made, by controller and outcome.", ["controller", "outcome"])
DECIDE_SECONDS = Histogram("raybus_decide_seconds", "Time of gather and decide.", ["controller"], buckets=_SECONDS)
DIRTY_ROOTS = Gauge("raybus_roots_waiting", "Roots that wait for a decision.", ["controller"])
ROOTS = Gauge("raybus_roots", "Roots in this replica's partitions.", ["controller"])
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


def exposition() -> bytes:
    """The text format of all metrics, the body of `/metrics`."""
    return generate_latest()
