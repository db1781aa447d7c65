"""What the status becomes when a phase is entered (contract rayjob §2.3, §2.7, §2.10, §2.12)."""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from raybus.api.decision import Why
from raybus.api.names import suffix
from raybus.api.reasons import Reason
from raybus.api.times import format_time
from raybus.api.v1 import NEW, JobStatus, RayClusterStatus, RayJobInfo, RayJobStatus
from raybus.api.v1 import JobDeploymentStatus as P
from raybus.job_ctl import ray
from raybus.job_ctl.situation import Situation


def _new(s: Situation, _: Why) -> RayJobStatus:
    """Nothing of the last attempt stays but start, end and the counters."""
    return replace(
        s.status,
        job_id="",
        ray_cluster_name="",
        dashboard_url="",
        job_status="",
        reason="",
        message="",
        ray_job_info=RayJobInfo(),
        ray_cluster_status=RayClusterStatus(),
        job_status_check_failure_start_time=None,
    )


def _initializing(s: Situation, _: Why) -> RayJobStatus:
    return named(s, replace(s.status, reason="", message=""))


def named(s: Situation, status: RayJobStatus) -> RayJobStatus:
    """`status` with the names of the attempt: a hash of UID, purpose and version of the RayJob, so that two controllers
    that race choose the same ones (design §3, "Names"). An attempt that was only interrupted keeps its names."""
    if status.ray_cluster_name:
        return status
    meta = s.view.meta
    return replace(
        status,
        job_id=s.spec.job_id or f"{meta.name}-{suffix(meta.uid, 'job', meta.resource_version)}",
        ray_cluster_name=f"{meta.name}-{suffix(meta.uid, 'cluster', meta.resource_version)}",
        start_time=format_time(s.now),
    )


def _running(s: Situation, _: Why) -> RayJobStatus:
    return replace(s.status, dashboard_url=ray.dashboard(s.view, s.knobs))


def _complete(s: Situation, why: Why) -> RayJobStatus:
    status = replace(s.status, end_time=format_time(s.now), reason="")
    if why.reason == Reason.TRANSITION_GRACE_PERIOD_EXCEEDED:
        status = replace(status, reason=str(why.reason), message=why.text)
    if status.job_status == JobStatus.SUCCEEDED:
        status = replace(status, succeeded=(status.succeeded or 0) + 1)
    return status


def _failed(s: Situation, why: Why) -> RayJobStatus:
    failed = (s.status.failed or 0) + 1
    return replace(s.status, failed=failed, end_time=format_time(s.now), reason=str(why.reason), message=why.text)


def _retrying(s: Situation, _: Why) -> RayJobStatus:
    """The failure stays to be read; the RayJob itself has not ended."""
    return replace(s.status, end_time=s.view.status.end_time)


def _validation_failed(s: Situation, why: Why) -> RayJobStatus:
    return replace(s.status, reason=str(why.reason), message=why.text)


ENTER: Mapping[str, Callable[[Situation, Why], RayJobStatus]] = {
    NEW: _new,
    P.INITIALIZING: _initializing,
    P.RUNNING: _running,
    P.COMPLETE: _complete,
    P.FAILED: _failed,
    P.RETRYING: _retrying,
    P.VALIDATION_FAILED: _validation_failed,
}
