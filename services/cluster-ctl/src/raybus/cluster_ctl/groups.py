"""Scaling one worker group: replace what failed, delete what is named, create what lacks, delete what is too much.

Each group is decided by itself, so one group's trouble does not stop the others (design §4, ADR 0053).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from raybus.api.decision import CreatePods, Delete, Intent, PodSlot, Why
from raybus.api.reasons import Reason
from raybus.api.v1 import WorkerGroupSpec
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.batch.registry import stamped
from raybus.cluster_ctl.build.autoscaler import is_autoscaling
from raybus.cluster_ctl.build.worker_pod import worker_pod
from raybus.cluster_ctl.health import failure
from raybus.cluster_ctl.outcome import Outcome, created, delete_pod, not_created
from raybus.cluster_ctl.pods import Pod
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.sizes import desired_pods
from raybus.cluster_ctl.view import ClusterView

MAX_CREATES = 100
"""Pods of one group that one Decision creates at most (design §3, "Names")."""


def decide_group(view: ClusterView, group: WorkerGroupSpec, knobs: ClusterKnobs) -> Outcome:
    """What `group` needs.

    A failed pod counts as present until it is gone, so that its replacement never meets it; a pod that is named in
    `workersToDelete` does not, so that lowering `replicas` together with naming pods removes exactly those.
    """
    pods = view.pods_of(group)
    named = frozenset(group.scale_strategy.workers_to_delete)
    failed = {pod.name: why for pod in pods if (why := failure(pod)) is not None}
    kept = [pod for pod in pods if pod.name not in named]
    surplus = len(kept) - desired_pods(group)
    by_worth = sorted(kept, key=lambda pod: _dispensable(pod, failed), reverse=True)
    too_many = {pod.name for pod in by_worth[: removable(view, surplus, knobs)]}
    doomed: list[tuple[Pod, Reason, str]] = []
    for pod in pods:
        if pod.deleting:
            continue
        if pod.name in failed:
            doomed.append((pod, Reason.POD_FAILED, failed[pod.name]))
        elif pod.name in named:
            doomed.append((pod, Reason.SCALED_DOWN, "it is named in workersToDelete"))
        elif pod.name in too_many:
            doomed.append((pod, Reason.SCALED_DOWN, too_many_text(group, surplus)))
    deletes = [delete_worker(view, pod, why) for pod, _, why in doomed]
    creates = _creates(view, group, kept, -surplus, knobs)
    return Outcome((*deletes, *creates), tuple(_because(view, group, doomed, creates)))


def removable(view: ClusterView, surplus: int, knobs: ClusterKnobs) -> int:
    """How many of the surplus this controller removes: while the Ray autoscaler runs, it alone knows which workers are
    idle and names them (contract reconcile §11.3 step 7, §11.6)."""
    if is_autoscaling(view.cluster) and not knobs.random_pod_delete:
        return 0
    return max(surplus, 0)


def too_many_text(group: WorkerGroupSpec, surplus: int, what: str = "pods") -> str:
    """Why a healthy pod goes."""
    if group.suspend:
        return f"group {group.group_name} is suspended"
    return f"group {group.group_name} has {surplus} {what} too many"


def _dispensable(pod: Pod, failed: dict[str, str]) -> tuple[bool, bool, bool, bool, str, str]:
    """Greater = goes first: already going, failed, not started, not ready, newest (ADR 0051)."""
    return pod.deleting, pod.name in failed, not pod.running, not pod.running_and_ready, pod.created, pod.name


def delete_worker(view: ClusterView, pod: Pod, why: str) -> Delete:
    """Delete one worker; `why` ends the sentence of its event."""
    return delete_pod(view, pod, Reason.DELETED_WORKER_POD, Reason.FAILED_TO_DELETE_WORKER_POD, why)


def created_workers(
    view: ClusterView, group: WorkerGroupSpec, slots: tuple[PodSlot, ...], knobs: ClusterKnobs
) -> CreatePods:
    """Create pods of one group, one per slot."""
    namespace = view.ref.namespace
    return CreatePods(
        namespace=namespace,
        template=stamped(worker_pod(view.cluster, group, knobs), view.cluster, group.group_name, knobs),
        slots=slots,
        done=created(Reason.CREATED_WORKER_POD, f"Created worker Pod {namespace}/{{names}}"),
        failed=not_created(
            Reason.FAILED_TO_CREATE_WORKER_POD,
            f"Failed to create worker Pod {namespace}/{{names}} of group {group.group_name}",
        ),
    )


def _creates(
    view: ClusterView, group: WorkerGroupSpec, kept: Sequence[Pod], lacking: int, knobs: ClusterKnobs
) -> tuple[CreatePods, ...]:
    if lacking <= 0:
        return ()
    meta = view.cluster.metadata
    prefix = names.worker_prefix(meta.name, group.group_name)
    free = names.pod_names(prefix, meta.uid, group.group_name, taken_names(view))
    indexes = free_indexes(kept)
    slots = tuple(
        PodSlot(name=name, labels={labels.REPLICA_INDEX: str(next(indexes))} if knobs.multi_host_indexing else {})
        for name in islice(free, min(lacking, MAX_CREATES))
    )
    return (created_workers(view, group, slots, knobs),)


def taken_names(view: ClusterView) -> frozenset[str]:
    """Names that no new pod may have: those of living pods, those that rest, and those listed for deletion."""
    listed = (group.scale_strategy.workers_to_delete for group in view.cluster.spec.worker_group_specs)
    return view.resting.union((pod.name for pod in view.pods), *listed)


def free_indexes(kept: Iterable[Pod]) -> Iterator[int]:
    """Replica indexes that no pod of the group has, lowest first."""
    used = {pod.replica_index for pod in kept}
    index = 0
    while True:
        if index not in used:
            yield index
        index += 1


def _because(
    view: ClusterView,
    group: WorkerGroupSpec,
    doomed: Sequence[tuple[Pod, Reason, str]],
    creates: Sequence[Intent],
) -> Iterator[Why]:
    for pod, reason, why in doomed:
        yield Why(reason=reason, text=f"Deleting pod {pod.name}: {why}.", about=view.pod_ref(pod.name))
    for create in creates:
        if isinstance(create, CreatePods):
            have, want = len(view.pods_of(group)), desired_pods(group)
            text = f"Group {group.group_name} has {have} of {want} pods: creating {len(create.slots)}."
            yield Why(reason=Reason.SCALED_UP, text=text, about=view.ref)
