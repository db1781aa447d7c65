"""Everything that a decision about one RayCluster reads: made by `gather`, frozen (design §4)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from raybus.api.decision import Ref
from raybus.api.messages import Presence, Refusal
from raybus.api.times import Instant
from raybus.api.v1 import RayCluster, WorkerGroupSpec
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.children import Child
from raybus.cluster_ctl.claims import Claim
from raybus.cluster_ctl.jobs import Job
from raybus.cluster_ctl.names import label_value
from raybus.cluster_ctl.pods import Pod
from raybus.cluster_ctl.services import Service


class ClusterView(Struct, frozen=True, kw_only=True):
    """One RayCluster with its children. `pods`: living pods of the cluster in name order, terminating ones
    included; `resting`: names of pods that are gone, and must not be used again yet; `refusals`: what the API
    server refused. `lost`: pods that should have been gone long ago, and are not among `pods` any more (ADR
    0125); `head_deaths`: when heads went within the last day. `children`: those of other kinds by kind and
    name; `presences`: what is known of the objects that were needed."""

    cluster: RayCluster
    pods: tuple[Pod, ...] = ()
    services: tuple[Service, ...] = ()
    jobs: tuple[Job, ...] = ()
    claims: tuple[Claim, ...] = ()
    resting: frozenset[str] = frozenset()
    lost: tuple[Pod, ...] = ()
    head_deaths: tuple[Instant, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    children: Mapping[tuple[str, str], Child] = {}
    presences: Mapping[Ref, Presence] = {}

    @property
    def ref(self) -> Ref:
        """The RayCluster as a reference."""
        meta = self.cluster.metadata
        return Ref("RayCluster", meta.namespace, meta.name)

    @property
    def heads(self) -> tuple[Pod, ...]:
        """Head pods; a healthy cluster has one."""
        return tuple(pod for pod in self.pods if pod.node_type == labels.HEAD)

    @property
    def workers(self) -> tuple[Pod, ...]:
        """Worker pods of all groups, also of groups that are no longer in the spec."""
        return tuple(pod for pod in self.pods if pod.node_type == labels.WORKER)

    def pods_of(self, group: WorkerGroupSpec) -> tuple[Pod, ...]:
        """Worker pods of one group."""
        return tuple(pod for pod in self.workers if pod.group == group.group_name)

    @property
    def head_services(self) -> tuple[Service, ...]:
        """Head Services, found by their labels (contract objects §4.1); normally one."""
        identifier = label_value(f"{self.cluster.metadata.name}-head")
        wanted = {labels.NODE_TYPE: labels.HEAD, labels.IDENTIFIER: identifier}
        return tuple(service for service in self.services if all(service.labels.get(k) == v for k, v in wanted.items()))

    def children_of(self, kind: str) -> tuple[Child, ...]:
        """All children of one of the kinds of `children.KINDS`."""
        return tuple(child for (found, _), child in sorted(self.children.items()) if found == kind)

    def is_there(self, ref: Ref) -> bool | None:
        """Whether a needed object exists, None while that is not known."""
        presence = self.presences.get(ref)
        return None if presence is None else presence.exists

    def pod_ref(self, name: str) -> Ref:
        """A pod of the cluster's namespace as a reference."""
        return Ref("Pod", self.cluster.metadata.namespace, name)
