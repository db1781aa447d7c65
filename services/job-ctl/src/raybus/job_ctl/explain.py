"""Why a RayJob is where it is, for people: object, cause, next step (`raybus explain`, TIMELINE)."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from raybus.api.decision import Intent, Why
from raybus.api.messages import Refusal, fingerprint
from raybus.api.reasons import Reason
from raybus.api.times import format_time
from raybus.api.v1 import NEW, ClusterConditionType, ConditionStatus, JobStatus
from raybus.api.v1 import JobDeploymentStatus as P
from raybus.job_ctl import ray
from raybus.job_ctl.children import clean_up_at
from raybus.job_ctl.explain_pods import pod_trouble
from raybus.job_ctl.seen import ClusterSeen
from raybus.job_ctl.situation import Situation, finish, submitter_done


def explain(s: Situation, todo: Sequence[Intent]) -> tuple[Why, ...]:
    """What the RayJob waits for now: first what the API server has refused of `todo`, then the rest."""
    wanted = {fingerprint(intent) for intent in todo} if s.view.refusals else set()
    waits = _BY_PHASE[s.phase](s) if s.phase in _BY_PHASE else iter(())
    return (*(_refusal(refusal) for refusal in s.view.refusals if refusal.intent in wanted), *waits)


# ------------------------------------------------------------------ refusals
_REFUSED = {
    Reason.QUOTA_REFUSED: "raise the quota (`kubectl describe quota -n {ns}`) or ask for less",
    Reason.FORBIDDEN: "grant the right to Raybus' applier, or ask whoever manages the policies of namespace {ns}",
    Reason.NAME_TAKEN: "delete or rename the object that has this name, it does not belong to this RayJob",
    Reason.REFUSED_BY_API_SERVER: "correct what the API server names",
}


def _refusal(refusal: Refusal) -> Why:
    reason = _refusal_reason(refusal)
    return Why(
        reason=reason,
        text=f"the API server refused to {refusal.verb} {refusal.ref}: {refusal.message} (tried {refusal.attempts} "
        f"times, next at {format_time(refusal.retry_at)})",
        about=refusal.ref,
        next_step=_REFUSED[reason].format(ns=refusal.ref.namespace),
    )


def _refusal_reason(refusal: Refusal) -> Reason:
    if refusal.reason == "name-taken":
        return Reason.NAME_TAKEN
    if "exceeded quota" in refusal.message:
        return Reason.QUOTA_REFUSED
    return Reason.FORBIDDEN if refusal.code == 403 else Reason.REFUSED_BY_API_SERVER


# ------------------------------------------------------------------ by phase
_SUBMITTER_LOG = "read the submitter's log with `kubectl logs job/{name} -n {ns}`"


def _initializing(s: Situation) -> Iterator[Why]:
    cluster, name = s.view.cluster, s.status.ray_cluster_name
    if cluster is None:
        yield _cluster(s, f"RayCluster {name} is being created")
    elif cluster.metadata.deletion_timestamp is not None:
        yield _cluster(s, f"RayCluster {name} is being deleted, it is made again after that")
    elif cluster.status.state != "ready":
        yield from _head(s, cluster)
        yield _cluster(s, f"RayCluster {name} is not ready: {_cluster_cause(cluster)}")
    elif not ray.dashboard(s.view, s.knobs):
        yield _cluster(s, f"head Service of RayCluster {name} has no port named dashboard")
    elif not s.by_http and s.view.submitter is None:
        yield Why(
            reason=Reason.SUBMITTER_WAITING,
            text=f"submitter Job {s.view.name} is being created",
            about=s.view.ref("Job", s.view.name),
        )


def _cluster(s: Situation, text: str) -> Why:
    name = s.status.ray_cluster_name
    return Why(
        reason=Reason.CLUSTER_NOT_READY,
        text=text,
        about=s.view.ref("RayCluster", name),
        next_step=f"see `raybus explain raycluster/{name} -n {s.view.namespace}`",
    )


def _cluster_cause(cluster: ClusterSeen) -> str:
    """The cluster's own reason, else its conditions that are not as they should be, else its counts."""
    status = cluster.status
    if status.reason:
        return status.reason
    unwell = [
        f"{condition.reason} {condition.message}".strip()
        for condition in status.conditions
        if (condition.type == ClusterConditionType.REPLICA_FAILURE and condition.status == ConditionStatus.TRUE)
        or (condition.type == ClusterConditionType.PROVISIONED and condition.status != ConditionStatus.TRUE)
    ]
    wanted = status.desired_worker_replicas
    counts = f"{status.ready_worker_replicas} of {wanted} workers are ready" if wanted else "it waits for its head"
    return "; ".join([*unwell, counts])


def _head(s: Situation, cluster: ClusterSeen) -> Iterator[Why]:
    pod = s.view.head
    if pod is None:
        yield Why(
            reason=Reason.HEAD_NOT_READY,
            text=f"RayCluster {cluster.metadata.name} has no head pod yet",
            about=s.view.ref("RayCluster", cluster.metadata.name),
        )
        return
    trouble = pod_trouble(pod)
    if trouble is not None:
        yield trouble
    if trouble is not None or not any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions):
        yield Why(
            reason=Reason.HEAD_NOT_READY,
            text=f"head pod {pod.metadata.name} is not ready (phase {pod.status.phase or 'unknown'})",
            about=s.view.ref("Pod", pod.metadata.name),
            next_step=f"see `kubectl describe pod {pod.metadata.name} -n {s.view.namespace}`",
        )


def _running(s: Situation) -> Iterator[Why]:
    if s.trouble is not None:
        yield Why(
            reason=Reason.DASHBOARD_UNREACHABLE,
            text=f"dashboard {s.status.dashboard_url} does not answer since "
            f"{s.status.job_status_check_failure_start_time}: {s.trouble.text}",
            about=s.view.ref("RayCluster", s.status.ray_cluster_name),
            next_step=f"see the head's log with `kubectl logs {s.status.ray_cluster_status.head.pod_name} "
            f"-n {s.view.namespace}`",
        )
    if not s.by_http:
        yield from _submitter(s)
    if not s.ended:
        text = (
            f"job {s.status.job_id} is {s.status.job_status}"
            if s.status.job_status
            else "Ray does not know the job yet"
        )
        yield Why(reason=Reason.JOB_RUNNING, text=text)
    elif not submitter_done(s):
        yield Why(
            reason=Reason.WAITING_FOR_SUBMITTER,
            text=f"Ray reports {s.status.job_status}, the submitter still delivers the log",
            about=s.view.ref("Job", s.view.name),
        )


def _submitter(s: Situation) -> Iterator[Why]:
    end = finish(s.view.submitter)
    about = s.view.ref("Job", s.view.name)
    log = _SUBMITTER_LOG.format(name=s.view.name, ns=s.view.namespace)
    if end is not None and end.failed:
        text = f"submitter Job {s.view.name} failed: {end.reason}: {end.message}"
        yield Why(reason=Reason.SUBMITTER_FAILED, text=text, about=about, next_step=log)
    elif end is None and s.view.submitter is not None:
        yield from (why for pod in s.view.submitter_pods if (why := pod_trouble(pod)) is not None)
        failed = s.view.submitter.status.failed
        if failed:
            text = f"{failed} pods of submitter Job {s.view.name} have failed so far"
            yield Why(reason=Reason.SUBMITTER_FAILED, text=text, about=about, next_step=log)


def _retrying(s: Situation) -> Iterator[Why]:
    left = [f"RayCluster {s.status.ray_cluster_name}"] if s.view.cluster is not None else []
    left += [f"Job {s.view.name}"] if s.view.submitter is not None and not s.by_http else []
    yield Why(reason=Reason.RETRYING, text=f"the next attempt waits until {' and '.join(left)} is gone")


def _complete(s: Situation) -> Iterator[Why]:
    reason = Reason.JOB_STOPPED if s.status.job_status == JobStatus.STOPPED else Reason.JOB_SUCCEEDED
    yield Why(reason=reason, text=f"Ray reports {s.status.job_status} for job {s.status.job_id}")
    yield from _ended(s)


def _failed(s: Situation) -> Iterator[Why]:
    """What the status says of the failure; a reason that another operator has left may be none of ours."""
    known = s.status.reason in set(Reason)
    reason = Reason(s.status.reason) if known else Reason.JOB_FAILED
    step = _SUBMITTER_LOG.format(name=s.view.name, ns=s.view.namespace) if reason == Reason.SUBMISSION_FAILED else ""
    text = s.status.message or f"job {s.status.job_id} has failed"
    yield Why(reason=reason, text=text, about=s.view.ref("RayJob", s.view.name), next_step=step)
    yield from _ended(s)


def _ended(s: Situation) -> Iterator[Why]:
    due = clean_up_at(s)
    if due is not None and s.now < due:
        what = "RayJob" if s.knobs.delete_rayjob else f"RayCluster {s.status.ray_cluster_name}"
        yield Why(reason=Reason.TTL_PENDING, text=f"{what} is deleted at {format_time(due)}")


def _validation_failed(s: Situation) -> Iterator[Why]:
    yield Why(
        reason=Reason.VALIDATION_FAILED,
        text=s.status.message,
        about=s.view.ref("RayJob", s.view.name),
        next_step=f"correct it with `kubectl edit rayjob {s.view.name} -n {s.view.namespace}`",
    )


_BY_PHASE: Mapping[str, Callable[[Situation], Iterator[Why]]] = {
    NEW: lambda _: iter(()),
    P.INITIALIZING: _initializing,
    P.RUNNING: _running,
    P.RETRYING: _retrying,
    P.COMPLETE: _complete,
    P.FAILED: _failed,
    P.VALIDATION_FAILED: _validation_failed,
}
