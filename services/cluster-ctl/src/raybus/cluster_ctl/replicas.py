"""Scaling a worker group whose replicas span several hosts: a replica lives and dies as a whole (contract reconcile
§11.4; ADR 0121)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, islice
from typing import NamedTuple

from raybus.api.decision import CreatePods, PodSlot, Why
from raybus.api.reasons import Reason
from raybus.api.v1 import WorkerGroupSpec
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.groups import (
    MAX_CREATES,
    created_workers,
    delete_worker,
    free_indexes,
    removable,
    taken_names,
    too_many_text,
)
from raybus.cluster_ctl.health import failure
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.pods import Pod
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.sizes import desired_pods
from raybus.cluster_ctl.view import ClusterView


class Replica(NamedTuple):
    """Pods of one name; `broken`: why the replica has to be made anew, None while it is whole and well."""

    name: str
    pods: tuple[Pod, ...]
    broken: str | None


def spans_hosts(group: WorkerGroupSpec, knobs: ClusterKnobs) -> bool:
    """Whether the group's pods are replicas of several hosts; without indexing they are pods like others."""
    return group.num_of_hosts > 1 and knobs.multi_host_indexing


def decide_replicas(view: ClusterView, group: WorkerGroupSpec, knobs: ClusterKnobs) -> Outcome:
    """What `group` needs.

    A broken replica counts as present until its last pod is gone; one with a pod that is named in `workersToDelete`
    does not, so that lowering `replicas` together with naming pods removes exactly those replicas.
    """
    named = frozenset(group.scale_strategy.workers_to_delete)
    replicas = _replicas(view.pods_of(group), group.num_of_hosts)
    unwanted = {replica.name for replica in replicas if any(pod.name in named for pod in replica.pods)}
    kept = [replica for replica in replicas if replica.name not in unwanted]
    surplus = len(kept) - desired_pods(group) // group.num_of_hosts
    by_worth = sorted(kept, key=_dispensable, reverse=True)
    too_many = {replica.name for replica in by_worth[: removable(view, surplus, knobs)]}
    doomed: list[tuple[Replica, Reason, str]] = []
    for replica in replicas:
        if replica.broken is not None:
            doomed.append((replica, Reason.POD_FAILED, replica.broken))
        elif replica.name in unwanted:
            doomed.append((replica, Reason.SCALED_DOWN, "one of its pods is named in workersToDelete"))
        elif replica.name in too_many:
            doomed.append((replica, Reason.SCALED_DOWN, too_many_text(group, surplus, "replicas")))
    deletes = [
        delete_worker(view, pod, f"replica {replica.name}: {why}")
        for replica, _, why in doomed
        for pod in replica.pods
        if not pod.deleting
    ]
    creates = tuple(_creates(view, group, kept, -surplus, knobs))
    because = (
        Why(reason=reason, text=f"Deleting replica {replica.name}: {why}.", about=view.ref)
        for replica, reason, why in doomed
    )
    return Outcome((*deletes, *creates), (*because, *_growth(view, group, kept, creates)))


def _replicas(pods: Sequence[Pod], hosts: int) -> list[Replica]:
    """Pods by replica, in name order; a pod without a replica's name is an incomplete one by itself."""
    by_name = sorted(pods, key=lambda pod: (pod.replica or pod.name, pod.name))
    found = ((name, tuple(members)) for name, members in groupby(by_name, key=lambda pod: pod.replica or pod.name))
    return [Replica(name, members, _broken(members, hosts)) for name, members in found]


def _broken(pods: Sequence[Pod], hosts: int) -> str | None:
    if len(pods) != hosts:
        return f"it has {len(pods)} of {hosts} hosts"
    for pod in pods:
        if pod.deleting:
            return f"its pod {pod.name} is being deleted"
        if (why := failure(pod)) is not None:
            return f"its pod {pod.name} has to be replaced: {why}"
    return None


def _dispensable(replica: Replica) -> tuple[bool, bool, bool, bool, str, str]:
    """Greater = goes first, as for single pods (ADR 0051): already going, broken, not started, not ready, newest."""
    pods = replica.pods
    return (
        any(pod.deleting for pod in pods),
        replica.broken is not None,
        not all(pod.running for pod in pods),
        not all(pod.running_and_ready for pod in pods),
        max(pod.created for pod in pods),
        replica.name,
    )


def _creates(
    view: ClusterView, group: WorkerGroupSpec, kept: Sequence[Replica], lacking: int, knobs: ClusterKnobs
) -> Iterator[CreatePods]:
    """Whole replicas only, as many as one Decision may hold, but at least one."""
    if lacking <= 0:
        return
    meta, hosts = view.cluster.metadata, group.num_of_hosts
    prefix = names.worker_prefix(meta.name, group.group_name)
    taken = taken_names(view).union(pod.replica for pod in view.pods)
    free = names.replica_names(prefix, meta.uid, group.group_name, hosts, taken)
    indexes = free_indexes(pod for replica in kept for pod in replica.pods)
    slots: list[PodSlot] = []
    for replica in islice(free, min(lacking, max(1, MAX_CREATES // hosts))):
        shared = {labels.REPLICA_NAME: replica.name, labels.REPLICA_INDEX: str(next(indexes))}
        for host, pod in enumerate(replica.pods):
            slots.append(PodSlot(name=pod, labels={**shared, labels.HOST_INDEX: str(host)}))
    for start in range(0, len(slots), MAX_CREATES):
        yield created_workers(view, group, tuple(slots[start : start + MAX_CREATES]), knobs)


def _growth(
    view: ClusterView, group: WorkerGroupSpec, kept: Sequence[Replica], creates: Sequence[CreatePods]
) -> Iterator[Why]:
    if creates:
        want, new = desired_pods(group) // group.num_of_hosts, sum(len(create.slots) for create in creates)
        text = f"Group {group.group_name} has {len(kept)} of {want} replicas: creating {new // group.num_of_hosts}."
        yield Why(reason=Reason.SCALED_UP, text=text, about=view.ref)
