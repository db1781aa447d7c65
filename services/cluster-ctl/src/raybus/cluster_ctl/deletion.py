"""Emptying Redis behind a cluster that is being deleted (contract reconcile §5; ADR 0122).

The finalizer holds the RayCluster until its cleanup Job has ended, and never longer than its deadline.
"""

from __future__ import annotations

from raybus.api.decision import Create, Decision, Note, Ref, Why
from raybus.api.messages import Refusal
from raybus.api.reasons import Reason
from raybus.api.times import Instant, parse_time
from raybus.cluster_ctl import fault_tolerance as ft
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build.redis_cleanup import redis_cleanup_job
from raybus.cluster_ctl.jobs import Job
from raybus.cluster_ctl.outcome import created, not_created
from raybus.cluster_ctl.refusals import present
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.teardown import delete_pods
from raybus.cluster_ctl.validate.paths import containers
from raybus.cluster_ctl.view import ClusterView

_NAMESPACE_ENDS = "is being terminated"
"""What the API server says to whoever creates something in a namespace that is being deleted."""


def holds_finalizer(view: ClusterView) -> bool:
    """Whether the cluster has to wait for us."""
    return labels.REDIS_FINALIZER in view.cluster.metadata.finalizers


def decide_deletion(view: ClusterView, now: Instant, knobs: ClusterKnobs) -> Decision:
    """Let go, or delete pods and run the Job. A head that still writes would fill Redis again, so the Job waits for
    its end; nothing waits beyond the deadline."""
    deadline = _deadline(view)
    for ended in (_not_needed, _cleaned, _impossible):
        if (text := ended(view, knobs)) is not None:
            return _release(view, text, forced=ended is _impossible)
    if now >= deadline:
        return _release(view, f"Redis could not be emptied within {ft.deletion_timeout(view.cluster)} s", forced=True)
    deletes = tuple(delete_pods(view, (*view.heads, *view.workers), "deletion"))
    jobs = () if view.heads or _job(view) else (_create_job(view, knobs),)
    what = "for the head pod to end" if view.heads else "for the Job that empties Redis"
    text = f"The RayCluster is being deleted and waits {what}, {int(deadline - now)} s at most."
    why = Why(reason=Reason.CLEANING_UP, text=text, about=view.ref)
    return Decision(intents=(*deletes, *jobs), because=(why,), wake_at=deadline, urgent=True)


def _deadline(view: ClusterView) -> Instant:
    asked = view.cluster.metadata.deletion_timestamp
    return Instant((parse_time(asked) if asked else 0.0) + ft.deletion_timeout(view.cluster))


def _not_needed(view: ClusterView, knobs: ClusterKnobs) -> str | None:
    if ft.cleans_up(view.cluster, knobs):
        return None
    return "fault tolerance with Redis, or emptying it, is switched off"


def _cleaned(view: ClusterView, knobs: ClusterKnobs) -> str | None:
    job = _job(view)
    return f"Job {job.name} has ended: {job.end}" if job is not None and job.end else None


def _impossible(view: ClusterView, knobs: ClusterKnobs) -> str | None:
    """Redis cannot be emptied at all: no Job can be made of this spec, or none in this namespace any more."""
    if not containers(view.cluster.spec.head_group_spec.template):
        return "no Job that empties Redis can be made of a head without containers"
    if view.refusals and any(_NAMESPACE_ENDS in refusal.message for refusal in _refused_job(view, knobs)):
        return "the namespace is being deleted, no Job can empty Redis any more"
    return None


def _refused_job(view: ClusterView, knobs: ClusterKnobs) -> list[Refusal]:
    return [refusal for refusal, _ in present(view.refusals, [_create_job(view, knobs)])]


def _job(view: ClusterView) -> Job | None:
    return next((job for job in view.jobs if job.node_type == labels.CLEANUP), None)


def _create_job(view: ClusterView, knobs: ClusterKnobs) -> Create:
    body = redis_cleanup_job(view.cluster, knobs)
    name, namespace = body["metadata"]["name"], view.ref.namespace
    where = f"{namespace}/{name}"
    return Create(
        ref=Ref("Job", namespace, name),
        body=body,
        done=created(Reason.CREATED_REDIS_CLEANUP_JOB, f"Created Redis cleanup Job {where}"),
        failed=not_created(Reason.FAILED_TO_CREATE_REDIS_CLEANUP_JOB, f"Failed to create Redis cleanup Job {where}"),
    )


def _release(view: ClusterView, why: str, forced: bool) -> Decision:
    text = f"Letting RayCluster {view.ref.namespace}/{view.ref.name} go: {why}."
    note = Note(type="Warning", reason=Reason.FORCE_DELETED_STUCK_CLUSTER, action="Cleanup", text=_forced(view, why))
    return Decision(
        finalizers=frozenset(),
        notes=(note,) if forced else (),
        because=(Why(reason=Reason.DELETION_REQUESTED, text=text, about=view.ref),),
        urgent=True,
    )


def _forced(view: ClusterView, why: str) -> str:
    space = ft.storage_namespace(view.cluster)
    where = f"{view.ref.namespace}/{view.ref.name}"
    return f"Deleted RayCluster {where} without emptying Redis (storage namespace {space}): {why}"
