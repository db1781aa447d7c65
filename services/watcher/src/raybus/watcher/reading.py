"""What routing and tracing read of an object; pure."""

import msgspec
from msgspec import Struct

from raybus.api.kinds import Kind
from raybus.api.routes import L_CLUSTER, Key, Traits, traits
from raybus.kube.objects import Object


class _Spec(Struct, frozen=True, rename="camel"):
    cluster_selector: dict[str, str] | None = None


class _Status(Struct, frozen=True, rename="camel"):
    ray_cluster_name: str = ""


class _RayJob(Struct, frozen=True):
    spec: _Spec = _Spec()
    status: _Status | None = None


_RAYJOB = msgspec.json.Decoder(_RayJob)


def key_of(kind: Kind, item: Object) -> Key:
    """The key of `item`, an object of `kind`."""
    return Key(kind.kind, item.meta.namespace, item.meta.name)


def traits_of(kind: Kind, item: Object) -> Traits:
    """Traits of `item`. Raises msgspec.ValidationError for a RayJob whose cluster names are no strings."""
    owner = item.meta.controller
    return traits(
        key_of(kind, item),
        item.meta.labels,
        (owner.kind, owner.name) if owner is not None else None,
        _claims(item.raw) if kind.kind == "RayJob" else (),
    )


def _claims(raw: bytes) -> tuple[str, ...]:
    """The clusters that a RayJob names: in its spec (selected) and in its status (its own, or the selected one)."""
    job = _RAYJOB.decode(raw)
    named = (job.spec.cluster_selector or {}).get(L_CLUSTER, ""), job.status.ray_cluster_name if job.status else ""
    return tuple(dict.fromkeys(name for name in named if name))
