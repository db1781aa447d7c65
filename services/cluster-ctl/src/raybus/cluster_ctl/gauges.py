"""What `/metrics` shows of a RayCluster: KubeRay's gauges (contract platform §7.1, ADR 0130)."""

from __future__ import annotations

from raybus.api.times import Instant
from raybus.api.v1 import ClusterConditionType, ConditionStatus, RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.conditions import holds
from raybus.runtime.root_gauges import DurationGauge, Ended, RootGauges, StateGauge, took


def _owner_kind(cluster: RayCluster) -> tuple[str, ...]:
    """Which kind asked for the cluster; a user's own has no such label."""
    return (cluster.metadata.labels.get(labels.ORIGIN_KIND, "None"),)


def _provisioned(cluster: RayCluster) -> tuple[str, ...]:
    return ("true" if holds(cluster.status.conditions, ClusterConditionType.PROVISIONED) else "false",)


def _provisioning(before: RayCluster | None, after: RayCluster, _: Instant) -> Ended | None:
    """From the creation, also after a suspension: the condition then turns True anew."""
    since = _provisioned_at(after)
    if since is None or (before is not None and _provisioned_at(before) == since):
        return None
    if after.spec.managed_by not in (None, labels.OUR_MANAGER):
        return None
    seconds = took(after.metadata.creation_timestamp, since)
    return None if seconds is None else ((), seconds)


def _provisioned_at(cluster: RayCluster) -> str | None:
    """`lastTransitionTime` of the condition while it is True."""
    for condition in cluster.status.conditions:
        if condition.type == ClusterConditionType.PROVISIONED and condition.status == ConditionStatus.TRUE:
            return condition.last_transition_time
    return None


GAUGES: RootGauges[RayCluster] = RootGauges(
    states=(
        StateGauge("kuberay_cluster_info", "RayClusters, and who asked for them.", ("owner_kind",), _owner_kind),
        StateGauge(
            "kuberay_cluster_condition_provisioned",
            "Whether all pods of a RayCluster have been ready at the same time.",
            ("condition",),
            _provisioned,
        ),
    ),
    durations=(
        DurationGauge(
            "kuberay_cluster_provisioned_duration_seconds",
            "Seconds from the creation of a RayCluster until its pods were ready.",
            (),
            _provisioning,
        ),
    ),
)
