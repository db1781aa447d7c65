"""A Service as decisions see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from raybus.api.v1 import ObjectMeta


class ServicePort(Struct, frozen=True, rename="camel"):
    """One port; `target_port` is a number or the name of a container port, 0 when it is left out."""

    port: int = 0
    name: str = ""
    target_port: int | str = 0
    node_port: int = 0


class _Spec(Struct, frozen=True, rename="camel"):
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ports: tuple[ServicePort, ...] = ()


class _Raw(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


class Service(Struct, frozen=True, kw_only=True):
    """One Service of the view; `cluster_ip` is `None` (the word) for a headless one;
    `owner`: UID of its controller, "" without one."""

    name: str
    uid: str
    owner: str = ""
    labels: Mapping[str, str] = {}
    cluster_ip: str = ""
    ports: tuple[ServicePort, ...] = ()
    deleting: bool = False


_decode_raw: Callable[[bytes], _Raw] = msgspec.json.Decoder(_Raw).decode


def decode_service(raw: bytes) -> Service:
    """Read a Service. Raises msgspec.DecodeError or msgspec.ValidationError."""
    service = _decode_raw(raw)
    return Service(
        name=service.metadata.name,
        uid=service.metadata.uid,
        owner=next((owner.uid for owner in service.metadata.owner_references if owner.controller), ""),
        labels=service.metadata.labels,
        cluster_ip=service.spec.cluster_ip,
        ports=service.spec.ports,
        deleting=service.metadata.deletion_timestamp is not None,
    )
