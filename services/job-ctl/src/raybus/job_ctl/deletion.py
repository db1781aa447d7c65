"""A RayJob that is being deleted: stop what runs, wait for that a little, let go (contract rayjob §2.14, ADR 0066).

Nothing here depends on whether the spec is valid.
"""

from raybus.api.decision import Decision, Why
from raybus.api.reasons import Reason
from raybus.api.times import Instant, parse_time
from raybus.job_ctl import ray
from raybus.job_ctl.gather import JobView
from raybus.job_ctl.labels import FINALIZER
from raybus.job_ctl.situation import ENDED

STOP_LIMIT = 10
"""Seconds after `deletionTimestamp` for which the answer of Ray to the stop is awaited."""


def decide_deletion(view: JobView, now: Instant) -> Decision:
    """Cluster, Service and Job go by their owner reference, so only the finalizer is ours to remove."""
    if FINALIZER not in view.meta.finalizers:
        return Decision()
    stop = None if view.status.job_status in ENDED else ray.stop(view)
    limit = Instant(parse_time(view.meta.deletion_timestamp or "") + STOP_LIMIT)
    if stop is None or ray.stopped(view) is not None or now >= limit:
        return Decision(finalizers=frozenset(), urgent=True, because=(_why(view, "RayJob is being deleted"),))
    text = f"RayJob is being deleted; Ray is asked to stop job {stop.job_id} first, for at most {STOP_LIMIT} s"
    return Decision(asks=(stop,), wake_at=limit, because=(_why(view, text),))


def _why(view: JobView, text: str) -> Why:
    return Why(reason=Reason.DELETION_REQUESTED, text=text, about=view.ref("RayJob", view.name))
