"""When a head that failed right after its start is replaced (ADR 0126)."""

from __future__ import annotations

from raybus.api.times import Instant, parse_time
from raybus.cluster_ctl.pods import Pod
from raybus.cluster_ctl.view import ClusterView

SHORT_LIFE = 120.0
"""Seconds; a head that ran longer was no crash at the start."""
WINDOW, FREE, FIRST, SLOWEST = 600.0, 2, 10.0, 160.0
"""Heads that went within the last `WINDOW` seconds count; the first `FREE` cost nothing, then the wait doubles from
`FIRST` to `SLOWEST` seconds."""


def replace_at(view: ClusterView, head: Pod, now: Instant) -> Instant:
    """When the failed `head` is to go; until then it stays, with its logs and its cause."""
    ended = head.ray_terminated
    if ended is None or ended.finished_at is None or not head.created:
        return now
    finished = parse_time(ended.finished_at)
    deaths = sum(now - death < WINDOW for death in view.head_deaths)
    if finished - parse_time(head.created) > SHORT_LIFE or deaths < FREE:
        return now
    return Instant(finished + min(FIRST * 2 ** (deaths - FREE), SLOWEST))
