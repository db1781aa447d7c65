"""The conditions of the phase table: each says why a RayJob leaves its phase, or None (contract rayjob §2.3-§2.10).

A deadline needs a look that began after it (`ray.looked_after`); what Ray has said of an ended job is final and needs
none (ADR 0061).
"""

from datetime import UTC, datetime

from raybus.api.decision import Why
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.api.v1 import JobDeploymentStatus, JobStatus
from raybus.job_ctl import ray
from raybus.job_ctl.situation import Situation, cluster_ready, finish, since, submitter_done

SUBMITTER_LIMIT = 30
"""Seconds that Ray may need to end a job after its submitter has finished (contract rayjob §0)."""

_NOT_RETRIED = (Reason.DEADLINE_EXCEEDED, Reason.STATUS_CHECK_TIMEOUT_EXCEEDED)


def always(s: Situation) -> Why:
    """A RayJob nobody has looked at yet, or whose next attempt is due."""
    return Why(
        reason=Reason.STARTED, text=f"RayJob {s.view.name} starts an attempt", about=s.view.ref("RayJob", s.view.name)
    )


# ------------------------------------------------------------------ the spec
def refused(s: Situation) -> Why | None:
    """The spec, metadata or status is invalid, or asks for something that is not built."""
    if s.problem is None:
        return None
    return Why(
        reason=Reason.VALIDATION_FAILED,
        text=s.problem.text,
        about=s.view.ref("RayJob", s.view.name),
        next_step=f"correct it with `kubectl edit rayjob {s.view.name} -n {s.view.namespace}`",
    )


def _mended(s: Situation) -> bool:
    """The spec was edited since it was refused, and is fine now (ADR 0060)."""
    refused_at = s.view.status.observed_generation
    return s.problem is None and refused_at not in (0, s.view.meta.generation)


def mended_before_start(s: Situation) -> Why | None:
    """A refused RayJob without a cluster has been corrected."""
    return always(s) if _mended(s) and not s.status.ray_cluster_name else None


def mended_after_start(s: Situation) -> Why | None:
    """A RayJob that was refused while an attempt was under way has been corrected: the attempt goes on."""
    return always(s) if _mended(s) and s.status.ray_cluster_name else None


# ------------------------------------------------------------------ deadlines
def active_deadline(s: Situation) -> Why | None:
    """`activeDeadlineSeconds` have passed, and a look after that found the job not ended."""
    limit = s.spec.active_deadline_seconds
    due = since(s.status.start_time, limit) if limit is not None else None
    if due is None or s.ended or s.now < due:
        return None
    if s.phase == JobDeploymentStatus.RUNNING and not ray.looked_after(s, due):
        return None
    return Why(
        reason=Reason.DEADLINE_EXCEEDED,
        text=f"The RayJob has passed the activeDeadlineSeconds. StartTime: {s.status.start_time}. "
        f"ActiveDeadlineSeconds: {limit}",
    )


def pre_running_deadline(s: Situation) -> Why | None:
    """`preRunningDeadlineSeconds` have passed before the job was Running."""
    limit = s.spec.pre_running_deadline_seconds
    due = since(s.status.start_time, limit) if limit is not None else None
    if due is None or s.now < due:
        return None
    return Why(
        reason=Reason.PRE_RUNNING_DEADLINE_EXCEEDED,
        text=f"The RayJob has passed the preRunningDeadlineSeconds. StartTime: {s.status.start_time}. "
        f"PreRunningDeadlineSeconds: {limit}",
    )


def status_check_timeout(s: Situation) -> Why | None:
    """The dashboard has not answered for too long, and a look after that failed as well."""
    limit = s.knobs.status_check_timeout
    due = since(s.status.job_status_check_failure_start_time, limit)
    if due is None or s.trouble is None or s.ended or s.now < due or s.trouble.seen < due:
        return None
    return Why(
        reason=Reason.STATUS_CHECK_TIMEOUT_EXCEEDED,
        text=f"The status check of job {s.status.job_id} exceeded timeout of {limit}s: {s.trouble.text}",
    )


# ------------------------------------------------------------------ on the way to Running
def ready_to_run(s: Situation) -> Why | None:
    """The cluster is ready, its dashboard is known, and whoever submits is there."""
    if not cluster_ready(s.view) or not ray.dashboard(s.view, s.knobs):
        return None
    job = s.view.submitter
    if not s.by_http and (job is None or job.metadata.deletion_timestamp is not None):
        return None
    name = s.status.ray_cluster_name
    return Why(reason=Reason.CLUSTER_READY, text=f"RayCluster {name} is ready", about=s.view.ref("RayCluster", name))


# ------------------------------------------------------------------ what Ray says
def ray_succeeded(s: Situation) -> Why | None:
    """Ray says SUCCEEDED or STOPPED, and no submitter is left to wait for."""
    stopped = s.status.job_status == JobStatus.STOPPED
    if not (stopped or s.status.job_status == JobStatus.SUCCEEDED) or not submitter_done(s):
        return None
    reason = Reason.JOB_STOPPED if stopped else Reason.JOB_SUCCEEDED
    return Why(reason=reason, text=f"Ray reports {s.status.job_status} for job {s.status.job_id}")


def ray_failed(s: Situation) -> Why | None:
    """Ray says FAILED, and no submitter is left to wait for."""
    if s.status.job_status != JobStatus.FAILED or not submitter_done(s):
        return None
    return Why(reason=Reason.APP_FAILED, text=s.status.message or f"Ray reports FAILED for job {s.status.job_id}")


def _grace_passed(s: Situation) -> Why | None:
    """Ray ended the job long ago, and the submitter still has not finished."""
    limit = s.knobs.transition_grace
    due = since(s.status.ray_job_info.end_time, limit)
    if not s.ended or due is None or s.now < due:
        return None
    return Why(
        reason=Reason.TRANSITION_GRACE_PERIOD_EXCEEDED,
        text=f"Ray ended job {s.status.job_id} with {s.status.job_status} at {s.status.ray_job_info.end_time}, but its "
        f"submitter exceeded timeout of {limit}s",
    )


def grace_passed_failed(s: Situation) -> Why | None:
    """Ray said FAILED long ago, and the submitter still has not finished."""
    return _grace_passed(s) if s.status.job_status == JobStatus.FAILED else None


def grace_passed(s: Situation) -> Why | None:
    """Ray said SUCCEEDED or STOPPED long ago, and the submitter still has not finished."""
    return _grace_passed(s) if s.status.job_status != JobStatus.FAILED else None


# ------------------------------------------------------------------ the submitter
def submitter_failed(s: Situation) -> Why | None:
    """The submitter's Job failed, and a look after that found the job not ended (an ended one has its own rows)."""
    end = None if s.by_http else finish(s.view.submitter)
    if end is None or not end.failed or s.ended or not ray.looked_after(s, end.seen_after):
        return None
    return Why(
        reason=Reason.SUBMISSION_FAILED,
        text=f"The submitter failed: {end.reason}: {end.message}",
        about=s.view.ref("Job", s.view.name),
        next_step=f"read its log with `kubectl logs job/{s.view.name} -n {s.view.namespace}`",
    )


def job_unknown(s: Situation) -> Why | None:
    """The submitter finished, and a look after that found that Ray does not know the job."""
    end, fact = None if s.by_http else finish(s.view.submitter), ray.probe(s.view)
    if end is None or fact is None or fact.outcome != "missing" or fact.begun < end.seen_after or s.ended:
        return None
    return Why(
        reason=Reason.APP_FAILED,
        text=f"The submitter finished, but RayCluster {s.status.ray_cluster_name} does not know job {s.status.job_id}",
    )


def submitter_timeout(s: Situation) -> Why | None:
    """The submitter finished, and a look 30 s later found the job still not ended."""
    end = None if s.by_http else finish(s.view.submitter)
    if end is None or s.ended or not ray.looked_after(s, Instant(end.seen_after + SUBMITTER_LIMIT)):
        return None
    at = datetime.fromtimestamp(end.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return Why(
        reason=Reason.TRANSITION_GRACE_PERIOD_EXCEEDED,
        text=f"The RayJob submitter finished at {at} but the ray job did not reach terminal state within "
        f"{SUBMITTER_LIMIT}s",
    )


# ------------------------------------------------------------------ what was lost
def cluster_lost(s: Situation) -> Why | None:
    """The cluster was deleted under a job that had not ended (ADR 0063)."""
    cluster, name = s.view.cluster, s.status.ray_cluster_name
    if s.ended or (cluster is not None and cluster.metadata.deletion_timestamp is None):
        return None
    return Why(
        reason=Reason.APP_FAILED,
        text=f"RayCluster {name} was deleted while job {s.status.job_id} was running on it",
        about=s.view.ref("RayCluster", name),
    )


def head_lost(s: Situation) -> Why | None:
    """The head pod on which Ray knew the job is gone, and with it the job (ADR 0063).

    In HTTPMode the job is submitted again to the new head instead, and with fault tolerance it survives.
    """
    pod = s.view.status.ray_cluster_status.head.pod_name
    if s.by_http or _survives(s) or not s.view.status.job_status or s.ended or not pod or pod in s.view.head_names:
        return None
    return Why(
        reason=Reason.APP_FAILED,
        text=f"Head pod {pod} is gone while job {s.status.job_id} was running on it",
        about=s.view.ref("Pod", pod),
    )


def job_lost(s: Situation) -> Why | None:
    """The head that knew the job, or took its submission, does not know it any more (ADR 0063)."""
    fact = ray.probe(s.view)
    if fact is None or fact.outcome != "missing" or s.ended or not ray.on_stored_head(s.view):
        return None
    if not s.status.job_status and not ray.looked_after_submission(s.view):
        return None
    name = s.status.ray_cluster_name
    return Why(
        reason=Reason.APP_FAILED,
        text=f"RayCluster {name} has lost job {s.status.job_id}: its Ray head was started anew",
        about=s.view.ref("RayCluster", name),
    )


def _survives(s: Situation) -> bool:
    cluster = s.spec.ray_cluster_spec
    by_annotation = s.view.meta.annotations.get("ray.io/ft-enabled", "").lower() == "true"
    return by_annotation or (cluster is not None and cluster.gcs_fault_tolerance_options is not None)


# ------------------------------------------------------------------ the next attempt
def attempts_left(s: Situation) -> Why | None:
    """The attempt has failed in this very pass, and `backoffLimit` allows another one (contract rayjob §2.10)."""
    limit = s.spec.backoff_limit
    if not s.fresh or limit is None or s.status.reason in _NOT_RETRIED or (s.status.failed or 0) > limit:
        return None
    return Why(
        reason=Reason.RETRYING, text=f"attempt {s.status.failed} of {limit + 1} has failed, the next one follows"
    )


def cleaned_up(s: Situation) -> Why | None:
    """Cluster and submitter of the failed attempt are gone."""
    if s.view.cluster is not None or (s.view.submitter is not None and not s.by_http):
        return None
    return Why(reason=Reason.RETRYING, text="cluster and submitter of the failed attempt are gone")


def deadlines(s: Situation) -> tuple[Instant, ...]:
    """When one of the guards of the present phase may begin to hold by the mere passing of time."""
    spec, start = s.spec, s.status.start_time
    active = since(start, spec.active_deadline_seconds) if spec.active_deadline_seconds is not None else None
    if s.phase == JobDeploymentStatus.INITIALIZING:
        before = spec.pre_running_deadline_seconds
        return _known(active, since(start, before) if before is not None else None)
    if s.phase != JobDeploymentStatus.RUNNING:
        return ()
    if s.ended:
        return _known(since(s.status.ray_job_info.end_time, s.knobs.transition_grace))
    end = None if s.by_http else finish(s.view.submitter)
    return _known(
        active,
        since(s.status.job_status_check_failure_start_time, s.knobs.status_check_timeout),
        end.seen_after if end else None,
        Instant(end.seen_after + SUBMITTER_LIMIT) if end else None,
    )


def _known(*times: Instant | None) -> tuple[Instant, ...]:
    return tuple(at for at in times if at is not None)
