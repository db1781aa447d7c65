"""A PersistentVolumeClaim as decisions see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Struct

from raybus.api.v1 import ObjectMeta
from raybus.api.v1.meta import OwnerReference


class _Resources(Struct, frozen=True):
    requests: Mapping[str, str] = {}


class _Spec(Struct, frozen=True, rename="camel"):
    access_modes: tuple[str, ...] = ()
    storage_class_name: str | None = None
    resources: _Resources = _Resources()


class _Raw(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()


class Claim(Struct, frozen=True, kw_only=True):
    """One claim; `size`: the requested storage as text; `owners`: all its owner references, in order."""

    name: str
    uid: str
    version: str
    deleting: bool = False
    owners: tuple[OwnerReference, ...] = ()
    size: str = "0"
    storage_class: str | None = None
    access_modes: tuple[str, ...] = ()


_decode_raw: Callable[[bytes], _Raw] = msgspec.json.Decoder(_Raw).decode


def decode_claim(raw: bytes) -> Claim:
    """Read a claim. Raises msgspec.DecodeError or msgspec.ValidationError."""
    claim = _decode_raw(raw)
    meta, spec = claim.metadata, claim.spec
    return Claim(
        name=meta.name,
        uid=meta.uid,
        version=meta.resource_version,
        deleting=meta.deletion_timestamp is not None,
        owners=meta.owner_references,
        size=str(spec.resources.requests.get("storage", "0")),
        storage_class=spec.storage_class_name,
        access_modes=spec.access_modes,
    )
