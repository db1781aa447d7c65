"""All pods of a cluster go at once: suspension and upgrade (contract reconcile §8, §9)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from raybus.api.decision import Delete, Json, Note
from raybus.api.reasons import Reason
from raybus.api.v1 import ClusterState
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.pods import Pod
from raybus.cluster_ctl.view import ClusterView


def delete_for_suspension(view: ClusterView) -> Outcome:
    """Delete what lives; `suspended_note` tells of it once all are gone."""
    return Outcome(tuple(delete_pods(view, (*view.heads, *view.workers), "suspension")))


def delete_for_upgrade(view: ClusterView) -> Outcome:
    """Delete all pods, the head last: its stamp is what says that the others have to go (ADR 0120)."""
    if workers := tuple(delete_pods(view, view.workers, "upgrade")):
        return Outcome(workers)
    where = f"{view.ref.namespace}/{view.ref.name}"
    text = f"Deleted all Pods for RayCluster {where} due to spec change with Recreate upgradeStrategy"
    done = Note(type="Normal", reason=Reason.DELETED_POD, action="Delete", text=text)
    return Outcome(tuple(replace(delete, done=done) for delete in delete_pods(view, view.heads, "upgrade")))


def suspended_note(view: ClusterView, status: Json) -> tuple[Note, ...]:
    """The Event that goes with the status which says for the first time that no pod is left. `status`: the next one."""
    stored = view.cluster.status.state
    if status.get("state") != ClusterState.SUSPENDED or stored == ClusterState.SUSPENDED:
        return ()
    text = f"Deleted Pods for RayCluster {view.ref.namespace}/{view.ref.name} due to suspension"
    return (Note(type="Normal", reason=Reason.DELETED_POD, action="Delete", text=text),)


def delete_pods(view: ClusterView, pods: Iterable[Pod], cause: str) -> Iterator[Delete]:
    """A silent delete of each pod that is not on its way out; a refusal is told."""
    where = f"{view.ref.namespace}/{view.ref.name}"
    text = f"Failed to delete Pods for RayCluster {where} due to {cause}"
    failed = Note(type="Warning", reason=Reason.FAILED_TO_DELETE_POD_COLLECTION, action="Delete", text=text)
    for pod in pods:
        if not pod.deleting:
            yield Delete(ref=view.pod_ref(pod.name), uid=pod.uid, failed=failed)
