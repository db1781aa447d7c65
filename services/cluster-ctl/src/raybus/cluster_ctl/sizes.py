"""How many pods a cluster should have (contract reconcile §11.1, §14.1)."""

from __future__ import annotations

from collections.abc import Iterable

from raybus.api.v1 import RayClusterSpec, WorkerGroupSpec

MAX_INT32 = 2147483647


def desired_pods(group: WorkerGroupSpec) -> int:
    """Pods of one group: replicas within their bounds (missing means the lower one), times hosts; 0 if suspended."""
    if group.suspend:
        return 0
    least, most = group.min_replicas or 0, _most(group)
    replicas = least if group.replicas is None else group.replicas
    return min(max(replicas, least), most) * group.num_of_hosts


def desired_workers(spec: RayClusterSpec) -> int:
    """Pods of all groups."""
    return sum(map(desired_pods, spec.worker_group_specs))


def least_workers(spec: RayClusterSpec) -> int:
    """Sum of the lower bounds, in pods."""
    return sum((group.min_replicas or 0) * group.num_of_hosts for group in _active(spec))


def most_workers(spec: RayClusterSpec) -> int:
    """Sum of the upper bounds, in pods; it ends at the greatest 32-bit number."""
    return min(sum(_most(group) * group.num_of_hosts for group in _active(spec)), MAX_INT32)


def _active(spec: RayClusterSpec) -> Iterable[WorkerGroupSpec]:
    return (group for group in spec.worker_group_specs if not group.suspend)


def _most(group: WorkerGroupSpec) -> int:
    return MAX_INT32 if group.max_replicas is None else group.max_replicas
