"""What is to be made or deleted in each phase (contract rayjob §2.4, §2.6, §2.10, §6.2)."""

from collections.abc import Callable, Iterator, Mapping

from raybus.api.decision import Apply, Create, Delete, Intent, Note
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.api.v1 import JobDeploymentStatus as P
from raybus.api.v1 import ObjectMeta
from raybus.job_ctl import ray
from raybus.job_ctl.build.cluster import ray_cluster
from raybus.job_ctl.build.head_service import rayjob_head_service
from raybus.job_ctl.build.submitter_job import submitter_job
from raybus.job_ctl.gather import JobView
from raybus.job_ctl.labels import CLUSTER, head_service
from raybus.job_ctl.situation import Situation, cluster_ready, since


def intents(s: Situation) -> tuple[Intent, ...]:
    """The intents of the phase that `s` has come to."""
    return tuple(_BY_PHASE[s.phase](s)) if s.phase in _BY_PHASE else ()


def clean_up_at(s: Situation) -> Instant | None:
    """When an ended RayJob cleans up; None if it never does, or the end is not known."""
    if s.phase not in (P.COMPLETE, P.FAILED) or not s.spec.shutdown_after_job_finishes:
        return None
    return since(s.status.end_time, s.spec.ttl_seconds_after_finished)


def _initializing(s: Situation) -> Iterator[Intent]:
    if s.view.cluster is None:
        yield _create_cluster(s)
    elif cluster_ready(s.view) and not s.by_http and s.view.submitter is None:
        address = ray.dashboard(s.view, s.knobs)
        if address:
            yield _create_submitter(s, address)


def _running(s: Situation) -> Iterator[Intent]:
    service = s.view.own_service
    if service is None or service.spec.selector.get(CLUSTER) != s.status.ray_cluster_name:
        yield _apply_service(s, new=service is None)
    if not s.by_http and s.view.submitter is None and not s.ended:
        yield _create_submitter(s, s.status.dashboard_url)


def _retrying(s: Situation) -> Iterator[Intent]:
    yield from _delete_cluster(s.view)
    job = s.view.submitter
    if job is not None and job.metadata.deletion_timestamp is None and not s.by_http:
        name = f"{s.view.namespace}/{s.view.name}"
        yield Delete(
            ref=s.view.ref("Job", s.view.name),
            uid=job.metadata.uid,
            done=_normal(Reason.DELETED_RAY_JOB_SUBMITTER, "Delete", f"Deleted submitter K8s Job {name}"),
            failed=_warning(
                Reason.FAILED_TO_DELETE_RAY_JOB_SUBMITTER, "Delete", f"Failed to delete submitter K8s Job {name}"
            ),
        )


def _ended(s: Situation) -> Iterator[Intent]:
    due = clean_up_at(s)
    if due is None or s.now < due:
        return
    if s.knobs.delete_rayjob:
        yield Delete(ref=s.view.ref("RayJob", s.view.name), uid=s.view.meta.uid)
    else:
        yield from _delete_cluster(s.view)


_BY_PHASE: Mapping[str, Callable[[Situation], Iterator[Intent]]] = {
    P.INITIALIZING: _initializing,
    P.RUNNING: _running,
    P.RETRYING: _retrying,
    P.COMPLETE: _ended,
    P.FAILED: _ended,
}


def _create_cluster(s: Situation) -> Create:
    name = s.status.ray_cluster_name
    what = f"{s.view.namespace}/{name}"
    return Create(
        ref=s.view.ref("RayCluster", name),
        body=ray_cluster(s.view, name),
        done=_normal(Reason.CREATED_RAY_CLUSTER, "Create", f"Created RayCluster {what}"),
        failed=_warning(Reason.FAILED_TO_CREATE_RAY_CLUSTER, "Create", f"Failed to create RayCluster {what}"),
    )


def _create_submitter(s: Situation, address: str) -> Create:
    what = f"{s.view.namespace}/{s.view.name}"
    return Create(
        ref=s.view.ref("Job", s.view.name),
        body=submitter_job(s.view, address, s.status.job_id, s.knobs),
        done=_normal(Reason.CREATED_RAY_JOB_SUBMITTER, "Create", f"Created Kubernetes Job {what}"),
        failed=_warning(
            Reason.FAILED_TO_CREATE_RAY_JOB_SUBMITTER, "Create", f"Failed to create new Kubernetes Job {what}"
        ),
    )


def _apply_service(s: Situation, new: bool) -> Apply:
    name = head_service(s.view.name)
    what = f"the service {s.view.namespace}/{name}"
    done = (
        (Reason.CREATED_SERVICE, "Create", f"Created {what}")
        if new
        else (Reason.UPDATED_SERVICE, "Update", f"Updated {what} to lead to RayCluster {s.status.ray_cluster_name}")
    )
    failed = (
        (Reason.FAILED_TO_CREATE_SERVICE, "Create", f"Failed to create {what}")
        if new
        else (Reason.FAILED_TO_UPDATE_SERVICE, "Update", f"Failed to update {what}")
    )
    return Apply(
        ref=s.view.ref("Service", name),
        body=rayjob_head_service(s.view, s.status.ray_cluster_name, s.knobs.head_cluster_ip),
        done=_normal(*done),
        failed=_warning(*failed),
    )


def _delete_cluster(view: JobView) -> Iterator[Delete]:
    meta: ObjectMeta | None = view.cluster.metadata if view.cluster else None
    if meta is None or meta.deletion_timestamp is not None:
        return
    what = f"{view.namespace}/{meta.name}"
    yield Delete(
        ref=view.ref("RayCluster", meta.name),
        uid=meta.uid,
        done=_normal(Reason.DELETED_RAY_CLUSTER, "Delete", f"Deleted cluster {what}"),
        failed=_warning(Reason.FAILED_TO_DELETE_RAY_CLUSTER, "Delete", f"Failed to delete cluster {what}"),
    )


def _normal(reason: Reason, action: str, text: str) -> Note:
    return Note(type="Normal", reason=reason, action=action, text=text)


def _warning(reason: Reason, action: str, text: str) -> Note:
    return Note(type="Warning", reason=reason, action=action, text=text)
