"""What a batch scheduler is to the rest of the controller."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.sizes import desired_workers, least_workers
from raybus.cluster_ctl.view import ClusterView


class Gang(NamedTuple):
    """What is to happen to the objects beside the pods; `ready`: they are as they should be, so pods may be made."""

    outcome: Outcome = Outcome()
    ready: bool = True


class Scheduler(NamedTuple):
    """`objects`: decides about the objects beside the pods. `stamp`: marks a pod of a group before it is made; pods
    without its mark are left to Kubernetes' own scheduler."""

    objects: Callable[[ClusterView, ClusterKnobs], Gang]
    stamp: Callable[[Json, RayCluster, str], None]


def no_objects(view: ClusterView, knobs: ClusterKnobs) -> Gang:
    """A scheduler that reads everything from the pods."""
    return Gang()


def copy_label(pod: Json, cluster: RayCluster, label: str, name: str = "") -> None:
    """Give the pod a label of its cluster, as `name` if that is another one; nothing if the cluster has none."""
    if value := cluster.metadata.labels.get(label):
        pod["metadata"]["labels"][name or label] = value


def annotate(pod: Json, **annotations: str) -> None:
    """Add annotations to a pod."""
    pod["metadata"].setdefault("annotations", {}).update(annotations)


def wants_gang(cluster: RayCluster) -> bool:
    """Whether the label is there; its value is not looked at (contract objects §9.43)."""
    return labels.GANG in cluster.metadata.labels


def members(cluster: RayCluster, elastic: bool = True) -> int:
    """Pods that have to run together: all, or (`elastic`) with autoscaling the least number."""
    spec = cluster.spec
    return 1 + (least_workers(spec) if elastic and spec.enable_in_tree_autoscaling else desired_workers(spec))
