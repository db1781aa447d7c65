"""A pod as decisions see it: the few fields they read, decoded once when the message arrives (design §4)."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from raybus.api.v1 import ObjectMeta
from raybus.cluster_ctl import labels as names


class ContainerWaiting(Struct, frozen=True):
    """Why a container has not started."""

    reason: str = ""
    message: str = ""


class ContainerTerminated(Struct, frozen=True, rename="camel"):
    """How a container ended."""

    exit_code: int = 0
    finished_at: str | None = None
    reason: str = ""
    message: str = ""


class ContainerState(Struct, frozen=True):
    """At most one of the two is set; a running container has neither."""

    waiting: ContainerWaiting | None = None
    terminated: ContainerTerminated | None = None


class ContainerStatus(Struct, frozen=True, rename="camel"):
    """One container; `last_state` is how its previous run ended."""

    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class PodCondition(Struct, frozen=True):
    """One condition of a pod's status."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Container(Struct, frozen=True):
    name: str = ""


class _Spec(Struct, frozen=True, rename="camel"):
    containers: tuple[_Container, ...] = ()
    restart_policy: str = "Always"


class _Status(Struct, frozen=True, rename="camel"):
    phase: str = ""
    reason: str = ""
    message: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    conditions: tuple[PodCondition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()


class _Raw(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class Pod(Struct, frozen=True, kw_only=True):
    """One pod. `owner`: UID of its controller, "" without one. `replica`: name of the replica of several hosts
    that it belongs to, "" for a pod that is a replica by itself. `made_from`, `made_by`: hash of the spec and
    version of the operator that it is stamped with, "" without a stamp. `due`: when a pod that is being deleted
    should be gone (its grace included), "" for others. `served`: Services may lead to it. `ray_container`: name
    of the first container of the template, by which its status is found (contract reconcile §10.1). `scheduled`
    and `ready`: the conditions, None while the pod has none. `containers`, `init_containers`: in the order of
    the pod's status."""

    name: str
    uid: str
    owner: str = ""
    group: str = ""
    node_type: str = ""
    replica: str = ""
    replica_index: int | None = None
    made_from: str = ""
    made_by: str = ""
    resource_version: str = ""
    created: str = ""
    deleting: bool = False
    due: str = ""
    served: bool = False
    phase: str = ""
    reason: str = ""
    message: str = ""
    ip: str = ""
    restart_policy: str = "Always"
    ray_container: str = ""
    scheduled: PodCondition | None = None
    ready: PodCondition | None = None
    containers: tuple[ContainerStatus, ...] = ()
    init_containers: tuple[ContainerStatus, ...] = ()

    @property
    def running(self) -> bool:
        """Phase Running, whatever its readiness."""
        return self.phase == "Running"

    @property
    def running_and_ready(self) -> bool:
        """Running, and its Ready condition is True."""
        return self.running and self.ready is not None and self.ready.status == "True"

    @property
    def running_and_not_unready(self) -> bool:
        """Running, and its Ready condition, if there is one, is True (contract reconcile §15)."""
        return self.running and (self.ready is None or self.ready.status == "True")

    @property
    def ray_terminated(self) -> ContainerTerminated | None:
        """How the Ray container ended; None while it runs, waits or is unknown."""
        for status in self.containers:
            if status.name == self.ray_container:
                return status.state.terminated
        return None


_decode_raw: Callable[[bytes], _Raw] = msgspec.json.Decoder(_Raw).decode


def decode_pod(raw: bytes) -> Pod:
    """Read a pod. Raises msgspec.DecodeError or msgspec.ValidationError."""
    pod = _decode_raw(raw)
    meta, status = pod.metadata, pod.status
    index = meta.labels.get(names.REPLICA_INDEX, "")
    conditions = {condition.type: condition for condition in status.conditions}
    return Pod(
        name=meta.name,
        uid=meta.uid,
        owner=next((owner.uid for owner in meta.owner_references if owner.controller), ""),
        group=meta.labels.get(names.GROUP, ""),
        node_type=meta.labels.get(names.NODE_TYPE, ""),
        replica=meta.labels.get(names.REPLICA_NAME, ""),
        replica_index=int(index) if index.isdigit() else None,
        made_from=meta.annotations.get(names.RECREATE_HASH, ""),
        made_by=meta.annotations.get(names.OPERATOR_VERSION, ""),
        resource_version=meta.resource_version,
        created=meta.creation_timestamp or "",
        deleting=meta.deletion_timestamp is not None,
        due=meta.deletion_timestamp or "",
        served=names.IDENTIFIER in meta.labels,
        phase=status.phase,
        reason=status.reason,
        message=status.message,
        ip=status.pod_ip,
        restart_policy=pod.spec.restart_policy,
        ray_container=pod.spec.containers[0].name if pod.spec.containers else "",
        scheduled=conditions.get("PodScheduled"),
        ready=conditions.get("Ready"),
        containers=status.container_statuses,
        init_containers=status.init_container_statuses,
    )
