"""A child that is neither pod nor Service, as decisions see it (ServiceAccount, Role, Ingress, NetworkPolicy, ...)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from raybus.api.decision import Json
from raybus.api.kinds import BY_KIND
from raybus.api.v1 import ObjectMeta

POD_GROUPS = ("PodGroup.volcano", "PodGroup.scheduler-plugins", "PodGroup", "Workload")
KINDS = ("ServiceAccount", "Role", "RoleBinding", "Ingress", "NetworkPolicy", "Issuer", "Certificate", *POD_GROUPS)
"""Kinds of children that are found by the cluster's label and decoded alike."""
KIND_OF_TOKEN: Mapping[str, str] = {BY_KIND[kind].token: kind for kind in KINDS}


class _Raw(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: Json = {}
    status: Json = {}


class Child(Struct, frozen=True, kw_only=True):
    """One child. `owner`: UID of its controller, "" without one; `version`: its resourceVersion."""

    name: str
    uid: str
    version: str
    owner: str = ""
    deleting: bool = False
    finalizers: tuple[str, ...] = ()
    generation: int = 0
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    spec: Json = {}
    status: Json = {}


_decode_raw: Callable[[bytes], _Raw] = msgspec.json.Decoder(_Raw).decode


def decode_child(raw: bytes) -> Child:
    """Read one. Raises msgspec.DecodeError or msgspec.ValidationError."""
    found = _decode_raw(raw)
    meta = found.metadata
    return Child(
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        owner=next((owner.uid for owner in meta.owner_references if owner.controller), ""),
        deleting=meta.deletion_timestamp is not None,
        finalizers=meta.finalizers,
        generation=meta.generation,
        labels=meta.labels,
        annotations=meta.annotations,
        spec=found.spec,
        status=found.status,
    )
