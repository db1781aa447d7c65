"""Gauges about roots, under KubeRay's names (contract platform §7.1): tables of pure functions, one table per kind.

They are read off the cached view: a state when the page is asked for, a duration when the root's own object arrives
(ADR 0130).
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from raybus.api.times import Instant, parse_time
from raybus.api.view import Entry
from raybus.telemetry.metrics import Readings

R = TypeVar("R")

ROOT_LABELS = ("name", "namespace", "uid")
"""Labels that each of these gauges begins with."""

Ended = tuple[tuple[str, ...], float]
"""Something that has ended: (values of the gauge's own labels, seconds that it took)."""
Kept = dict[tuple[str, tuple[str, ...]], float]
"""(gauge, values of its own labels) -> seconds."""


class StateGauge(NamedTuple, Generic[R]):
    """A gauge that is always 1: what it says stands in its labels. `read`: the root as it is stored -> values of
    `labels`."""

    name: str
    text: str
    labels: tuple[str, ...]
    read: Callable[[R], tuple[str, ...]]


class DurationGauge(NamedTuple, Generic[R]):
    """Seconds that something took; a value stays until the root is gone or another one with the same labels comes.

    `read`: (the root as it was before, None if that is not known; the root; when it was seen) -> what has ended.
    """

    name: str
    text: str
    labels: tuple[str, ...]
    read: Callable[[R | None, R, Instant], Ended | None]


class RootGauges(NamedTuple, Generic[R]):
    """All gauges about one kind; R is what the controller's decoder makes of the root's own object."""

    states: tuple[StateGauge[R], ...] = ()
    durations: tuple[DurationGauge[R], ...] = ()


NO_GAUGES: RootGauges[Any] = RootGauges()


class Shown(NamedTuple):
    """One root that is there, and the durations kept of it."""

    namespace: str
    name: str
    uid: str
    value: Any
    kept: Kept


def took(begin: str | None, end: str | Instant | None) -> float | None:
    """Seconds between two times of a stored object; None if one is missing or no time: it may be anybody's text."""
    if begin is None or end is None:
        return None
    try:
        return max(0.0, (parse_time(end) if isinstance(end, str) else end) - parse_time(begin))
    except (ValueError, OverflowError):
        return None


def keep(gauges: RootGauges[Any], kept: Kept, before: Entry | None, after: Entry) -> None:
    """Take into `kept` what has ended with the version `after` of a root's own object; a root that is gone, or another
    one of the same name, keeps nothing."""
    known = None if before is None or before.gone or before.uid != after.uid else before.value
    if known is None or after.gone:
        kept.clear()
    for gauge in () if after.gone else gauges.durations:
        ended = gauge.read(known, after.value, after.observed_at)
        if ended is not None:
            kept[gauge.name, ended[0]] = ended[1]


def readings(gauges: RootGauges[Any], roots: Iterable[Shown]) -> Iterator[Readings]:
    """Every gauge of the kind with its samples."""
    known = tuple(roots)
    for state in gauges.states:
        ones = [((r.name, r.namespace, r.uid, *state.read(r.value)), 1.0) for r in known]
        yield Readings(state.name, state.text, ROOT_LABELS + state.labels, ones)
    for duration in gauges.durations:
        seconds = [
            ((r.name, r.namespace, r.uid, *labels), value)
            for r in known
            for (name, labels), value in r.kept.items()
            if name == duration.name
        ]
        yield Readings(duration.name, duration.text, ROOT_LABELS + duration.labels, seconds)
