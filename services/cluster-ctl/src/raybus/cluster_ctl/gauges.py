"""What `/metrics` shows of a RayCluster: KubeRay's gauges (contract platform §7.1, ADR 0130)."""

from __future__ import annotations

from raybus.api.times import Instant
from raybus.api.v1 import ClusterConditionType, RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.conditions import by_type, holds
from raybus.runtime.root_gauges import DurationGauge, Ended, RootGauges, StateGauge, took


def _owner_kind(cluster: RayCluster) -> tuple[str, ...]:
    """Which kind asked for the cluster; a user's own has no such label."""
    return (cluster.metadata.labels.get(labels.ORIGIN_KIND, "None"),)


def _provisioned(cluster: RayCluster) -> tuple[str, ...]:
    return ("true" if holds(cluster.status.conditions, ClusterConditionType.PROVISIONED) else "false",)


def _provisioning(_: RayCluster | None, cluster: RayCluster, seen: Instant) -> Ended | None:
    """From the creation, also after a suspension: the condition then turns True anew."""
    if cluster.spec.managed_by not in (None, labels.OUR_MANAGER):
        return None
    if not holds(cluster.status.conditions, ClusterConditionType.PROVISIONED):
        return None
    since = by_type(cluster.status.conditions)[ClusterConditionType.PROVISIONED].last_transition_time
    seconds = took(cluster.metadata.creation_timestamp, since)
    return None if seconds is None else ((), seconds)


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
