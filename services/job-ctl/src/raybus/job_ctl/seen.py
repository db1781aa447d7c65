"""What job-ctl reads of each Kubernetes object: decoded once, when it arrives, into the few fields that count."""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from raybus.api.v1 import ObjectMeta, RayClusterStatus, RayJob


class RayJobSeen(Struct, frozen=True):
    """The RayJob, and its `rayClusterSpec` as the user wrote it, unknown fields included ("" if absent)."""

    job: RayJob
    cluster_spec: bytes


class ClusterSeen(Struct, frozen=True):
    """A RayCluster without its spec."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: RayClusterStatus = field(default_factory=RayClusterStatus)


class Waiting(Struct, frozen=True):
    """Why a container does not run yet."""

    reason: str = ""
    message: str = ""


class Terminated(Struct, frozen=True, rename="camel"):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""


class ContainerState(Struct, frozen=True):
    """At most one is set."""

    waiting: Waiting | None = None
    terminated: Terminated | None = None


class ContainerStatus(Struct, frozen=True, rename="camel"):
    """One container of a pod."""

    name: str = ""
    image: str = ""
    state: ContainerState = field(default_factory=ContainerState)
    last_state: ContainerState = field(default_factory=ContainerState)


class ObjectCondition(Struct, frozen=True, rename="camel"):
    """A condition of a pod or Job. `last_transition_time` is RFC 3339 in whole seconds."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: str | None = None


class PodStatus(Struct, frozen=True, rename="camel"):
    """The state of a pod."""

    phase: str = ""
    conditions: tuple[ObjectCondition, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()


class PodSeen(Struct, frozen=True):
    """A head or submitter pod without its spec."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: PodStatus = field(default_factory=PodStatus)


class JobStatusSeen(Struct, frozen=True):
    """Pod counts and conditions of a Job."""

    conditions: tuple[ObjectCondition, ...] = ()
    succeeded: int = 0
    failed: int = 0


class JobSeen(Struct, frozen=True):
    """A Job without its spec."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    status: JobStatusSeen = field(default_factory=JobStatusSeen)


class ServicePort(Struct, frozen=True):
    """One port of a Service."""

    name: str = ""
    port: int = 0


class ServiceSpec(Struct, frozen=True):
    """Whom a Service leads to, and by which ports."""

    selector: dict[str, str] = field(default_factory=dict)
    ports: tuple[ServicePort, ...] = ()


class ServiceSeen(Struct, frozen=True):
    """A Service."""

    metadata: ObjectMeta = field(default_factory=ObjectMeta)
    spec: ServiceSpec = field(default_factory=ServiceSpec)


class _RawSpec(Struct, rename="camel"):
    ray_cluster_spec: msgspec.Raw = msgspec.Raw()


class _RawRayJob(Struct):
    spec: _RawSpec = field(default_factory=_RawSpec)


_read_typed = msgspec.json.Decoder(RayJob).decode
_read_raw = msgspec.json.Decoder(_RawRayJob).decode


def read_rayjob(data: bytes) -> RayJobSeen:
    """Decode a RayJob. Raises msgspec.DecodeError or msgspec.ValidationError."""
    raw = bytes(_read_raw(data).spec.ray_cluster_spec)
    return RayJobSeen(job=_read_typed(data), cluster_spec=b"" if raw == b"null" else raw)


DECODERS: Mapping[str, Callable[[bytes], Any]] = {
    "rayjob": read_rayjob,
    "raycluster": msgspec.json.Decoder(ClusterSeen).decode,
    "pod": msgspec.json.Decoder(PodSeen).decode,
    "job": msgspec.json.Decoder(JobSeen).decode,
    "service": msgspec.json.Decoder(ServiceSeen).decode,
}
