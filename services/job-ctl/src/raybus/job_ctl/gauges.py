"""What `/metrics` shows of a RayJob: KubeRay's gauges (contract platform §7.1, ADR 0130)."""

from collections.abc import Callable, Mapping

from raybus.api.times import Instant
from raybus.api.v1 import JobDeploymentStatus as P
from raybus.api.v1 import RayJobStatus
from raybus.job_ctl.labels import OUR_MANAGER
from raybus.job_ctl.seen import RayJobSeen
from raybus.runtime.root_gauges import DurationGauge, Ended, RootGauges, StateGauge, took


def _phase(seen: RayJobSeen) -> tuple[str, ...]:
    return (seen.job.status.job_deployment_status,)


def _stored_end(status: RayJobStatus, _: Instant) -> str | Instant | None:
    return status.end_time


def _when_seen(_: RayJobStatus, seen: Instant) -> str | Instant | None:
    """The status of a RayJob that will be tried again has no end."""
    return seen


_ENDED: Mapping[str, tuple[Callable[[RayJobStatus, Instant], str | Instant | None], int]] = {
    P.COMPLETE: (_stored_end, 0),
    P.FAILED: (_stored_end, 1),
    P.RETRYING: (_when_seen, 1),
}
"""Phases in which an attempt has ended -> (when it did, how many of the failures counted are its own)."""


def _execution(before: RayJobSeen | None, after: RayJobSeen, seen: Instant) -> Ended | None:
    """An attempt, once, when its end is stored; `retry_count` is the number of those that failed before it."""
    status, phase = after.job.status, after.job.status.job_deployment_status
    if after.job.spec.managed_by not in (None, "", OUR_MANAGER):
        return None
    if phase not in _ENDED or (before is not None and before.job.status.job_deployment_status == phase):
        return None
    end, own = _ENDED[phase]
    seconds = took(status.start_time, end(status, seen))
    return None if seconds is None else ((phase, str(max(0, (status.failed or 0) - own))), seconds)


GAUGES: RootGauges[RayJobSeen] = RootGauges(
    states=(
        StateGauge("kuberay_job_info", "RayJobs.", (), lambda seen: ()),
        StateGauge("kuberay_job_deployment_status", "Where a RayJob stands.", ("deployment_status",), _phase),
    ),
    durations=(
        DurationGauge(
            "kuberay_job_execution_duration_seconds",
            "Seconds from the start of an attempt of a RayJob until it ended or failed.",
            ("job_deployment_status", "retry_count"),
            _execution,
        ),
    ),
)
