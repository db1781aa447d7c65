"""Gauges about roots: what is kept of a root, and what is read off it."""

from typing import Any

import pytest

from raybus.api.times import Instant, parse_time
from raybus.api.view import Entry
from raybus.runtime.root_gauges import DurationGauge, Ended, Kept, RootGauges, Shown, StateGauge, keep, readings, took

Json = dict[str, Any]


def _ended(before: Json | None, after: Json, seen: Instant) -> Ended | None:
    return ((after["phase"],), seen) if before is None or before["phase"] != after["phase"] else None


GAUGES: RootGauges[Json] = RootGauges(
    states=(StateGauge("phase", "Where it is.", ("phase",), lambda root: (root["phase"],)),),
    durations=(DurationGauge("seconds", "How long it took.", ("phase",), _ended),),
)


def entry(phase: str, seen: float, uid: str = "u1") -> Entry:
    return Entry(value={"phase": phase}, uid=uid, observed_at=Instant(seen))


GONE = Entry(value=None, uid="u1", gone=True)


@pytest.mark.parametrize(
    ("begin", "end", "seconds"),
    [
        ("2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z", 90.0),
        ("2026-01-01T00:00:00Z", Instant(parse_time("2026-01-01T00:00:02Z") + 0.25), 2.25),
        ("2026-01-01T00:00:05Z", "2026-01-01T00:00:00Z", 0.0),
        (None, "2026-01-01T00:00:00Z", None),
        ("2026-01-01T00:00:00Z", None, None),
        ("yesterday", "2026-01-01T00:00:00Z", None),
        ("0001-01-01T00:00:00", "0001-01-01T00:00:00", None),
    ],
)
def test_seconds_between_two_times_of_an_object(begin: str | None, end: str | Instant | None, seconds: float) -> None:
    assert took(begin, end) == seconds


@pytest.mark.parametrize(
    ("story", "kept"),
    [
        ([], {}),
        ([entry("a", 1)], {"a": 1.0}),
        ([entry("a", 1), entry("a", 2)], {"a": 1.0}),
        ([entry("a", 1), entry("b", 2)], {"a": 1.0, "b": 2.0}),
        ([entry("a", 1), entry("b", 2), entry("a", 3)], {"a": 3.0, "b": 2.0}),
        ([entry("a", 1), GONE], {}),
        ([entry("a", 1), GONE, entry("b", 3, uid="u2")], {"b": 3.0}),
        ([entry("a", 1), entry("a", 3, uid="u2")], {"a": 3.0}),
        ([entry("b", 1), entry("a", 3, uid="u2")], {"a": 3.0}),
        ([GONE, GONE], {}),
    ],
)
def test_durations_stay_until_the_root_is_gone_or_another(story: list[Entry], kept: dict[str, float]) -> None:
    found: Kept = {}
    for before, after in zip([None, *story], story, strict=False):
        keep(GAUGES, found, before, after)
    assert found == {("seconds", (phase,)): seconds for phase, seconds in kept.items()}


def test_every_root_has_its_states_and_all_durations_kept_of_it() -> None:
    roots = (
        Shown("n", "one", "u1", {"phase": "b"}, {("seconds", ("a",)): 1.5, ("seconds", ("b",)): 2.0}),
        Shown("n", "two", "u2", {"phase": "a"}, {}),
    )
    states, durations = readings(GAUGES, iter(roots))
    assert (states.name, states.labels) == ("phase", ("name", "namespace", "uid", "phase"))
    assert list(states.samples) == [(("one", "n", "u1", "b"), 1.0), (("two", "n", "u2", "a"), 1.0)]
    assert durations.labels == ("name", "namespace", "uid", "phase")
    assert list(durations.samples) == [(("one", "n", "u1", "a"), 1.5), (("one", "n", "u1", "b"), 2.0)]
