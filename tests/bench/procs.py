"""What processes cost: CPU seconds and resident memory, from /proc."""

import os
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
LOOK = 0.5
"""Seconds between two looks at the memory."""


def cpu_seconds(pid: int) -> float:
    """User and system time of a process so far; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def rss_mb(pid: int) -> float:
    """Resident memory of a process; 0 when it is gone."""
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return 0.0
    return int(found[1]) / 1024 if found else 0.0


@dataclass
class Cost:
    """`cpu_s` and `rss_mb` (at the end) by process name; `rss_peak_mb`: the largest sum seen; `wall_s`: how long."""

    cpu_s: dict[str, float] = field(default_factory=dict)
    rss_mb: dict[str, float] = field(default_factory=dict)
    rss_peak_mb: float = 0.0
    wall_s: float = 0.0

    @property
    def cpu_total_s(self) -> float:
        return sum(self.cpu_s.values())


@contextmanager
def measured(pids: Mapping[str, int]) -> Iterator[Cost]:
    """The cost of the body; complete once it has ended."""
    cost, over = Cost(), threading.Event()
    before = {name: cpu_seconds(pid) for name, pid in pids.items()}

    def look() -> None:
        while not over.wait(LOOK):
            cost.rss_peak_mb = max(cost.rss_peak_mb, sum(map(rss_mb, pids.values())))

    watching = threading.Thread(target=look, daemon=True)
    begun = time.monotonic()
    watching.start()
    try:
        yield cost
    finally:
        over.set()
        watching.join()
        cost.wall_s = time.monotonic() - begun
        cost.cpu_s = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
        cost.rss_mb = {name: rss_mb(pid) for name, pid in pids.items()}
        cost.rss_peak_mb = max(cost.rss_peak_mb, sum(cost.rss_mb.values()))
