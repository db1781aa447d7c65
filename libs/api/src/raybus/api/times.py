"""Instants: seconds since the epoch as a float, and their RFC 3339 form on the wire."""

from datetime import UTC, datetime
from typing import NewType

Instant = NewType("Instant", float)
"""Seconds since 1970-01-01 UTC by a wall clock."""


def parse_time(text: str) -> Instant:
    """Read an RFC 3339 time as Kubernetes writes it (`2026-01-02T03:04:05Z`, fractions allowed).

    Raises ValueError when `text` is no such time.
    """
    return Instant(datetime.fromisoformat(text).timestamp())


def format_time(instant: Instant) -> str:
    """Whole seconds in UTC with `Z`, the form of `metav1.Time`; fractions are cut, as Kubernetes does."""
    return datetime.fromtimestamp(int(instant), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(instant: Instant) -> str:
    """Six fractional digits in UTC with `Z`, the form of `metav1.MicroTime` (events)."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
