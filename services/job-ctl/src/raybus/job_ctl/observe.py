"""The stored status, brought up to date with what cluster and Ray say; no transition (contract rayjob §2.4, §2.6)."""

from msgspec.structs import replace

from raybus.api.messages import JobFact
from raybus.api.times import Instant, format_time
from raybus.api.v1 import JobDeploymentStatus, RayClusterStatus, RayJobInfo, RayJobStatus
from raybus.job_ctl import ray
from raybus.job_ctl.entry import named
from raybus.job_ctl.gather import JobView
from raybus.job_ctl.situation import ENDED, Answered, Situation, Trouble

_FOLLOWS_CLUSTER = (JobDeploymentStatus.INITIALIZING, JobDeploymentStatus.RUNNING)


def observe(s: Situation) -> Situation:
    """`s` with the next status and the present trouble filled in."""
    status = replace(s.status, observed_generation=s.view.meta.generation)
    if s.phase == JobDeploymentStatus.INITIALIZING:
        # A status that was restored in part may lack them; without names nothing could be made.
        status = named(s, status)
    if s.phase in _FOLLOWS_CLUSTER:
        status = _with_cluster(s, status)
    if s.phase == JobDeploymentStatus.RUNNING:
        status = _with_ray(s.view, status)
        found = ray.trouble(s.view, s.now, s.by_http)
        return replace(s, status=_with_timer(s, status, found), trouble=found if isinstance(found, Trouble) else None)
    if s.phase == JobDeploymentStatus.VALIDATION_FAILED and s.problem is not None:
        status = replace(status, message=s.problem.text)
    return replace(s, status=status)


def _with_cluster(s: Situation, status: RayJobStatus) -> RayJobStatus:
    cluster = s.view.cluster
    if cluster is None or tracked(cluster.status) == tracked(status.ray_cluster_status):
        return status
    before, after = status.ray_cluster_status.head.pod_name, cluster.status.head.pod_name
    status = replace(status, ray_cluster_status=cluster.status)
    if s.by_http and before and before != after and status.job_status not in ENDED:
        # The new head has not heard of the job: from here on it may be submitted there (design §3, ADR 0063).
        return replace(status, job_status="", message="", ray_job_info=RayJobInfo())
    return status


def tracked(status: RayClusterStatus) -> RayClusterStatus:
    """What of a cluster's status is worth a write of the RayJob's (contract rayjob §2.7)."""
    return replace(status, last_update_time=None, observed_generation=0)


def _with_ray(view: JobView, status: RayJobStatus) -> RayJobStatus:
    fact = ray.probe(view)
    if fact is None or fact.job is None or fact.outcome != "ok" or view.status.job_status in ENDED:
        return status
    return replace(
        status, job_status=fact.job.status, message=fact.job.message, reason="", ray_job_info=_info(fact.job, status)
    )


def _info(job: JobFact, status: RayJobStatus) -> RayJobInfo:
    known = status.ray_job_info
    return RayJobInfo(
        start_time=_time(job.start_time) or known.start_time, end_time=_time(job.end_time) or known.end_time
    )


def _time(milliseconds: int) -> str | None:
    return format_time(Instant(milliseconds / 1000)) if milliseconds else None


def _with_timer(s: Situation, status: RayJobStatus, found: Trouble | Answered | None) -> RayJobStatus:
    """The failure timer: started by the first failed look, cleared by the first answer (ADR 0062)."""
    if isinstance(found, Trouble):
        started = status.job_status_check_failure_start_time or format_time(s.now)
        return replace(status, job_status_check_failure_start_time=started)
    if isinstance(found, Answered):
        return replace(status, job_status_check_failure_start_time=None)
    return status
