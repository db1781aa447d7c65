"""Kubernetes objects as they travel: raw bytes without `managedFields`, plus the few metadata fields routing reads.

Objects are never decoded as a whole here: `msgspec.Raw` keeps every value as the slice of bytes it came in
(40 µs for a pod of 10 kB; decoding and encoding it would take 80 µs, the standard library 200 µs).
"""

import msgspec
from msgspec import Raw, Struct

from raybus.api.kinds import Kind


class Owner(Struct, frozen=True):
    """One entry of `metadata.ownerReferences`."""

    kind: str
    name: str
    uid: str
    controller: bool = False


class Meta(Struct, frozen=True, rename="camel"):
    """The part of `metadata` that is read from every object; times are as the API server wrote them, "" = unset."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[Owner, ...] = ()
    deletion_timestamp: str = ""

    @property
    def controller(self) -> Owner | None:
        """The owner reference with `controller: true`, None without one."""
        return next((owner for owner in self.owner_references if owner.controller), None)


class Object(Struct, frozen=True):
    """One object: `raw` is its JSON with `kind` and `apiVersion`, without `metadata.managedFields`."""

    meta: Meta
    raw: bytes

    @property
    def key(self) -> tuple[str, str]:
        """(namespace, name)."""
        return self.meta.namespace, self.meta.name


_FIELDS = msgspec.json.Decoder(dict[str, Raw])
_META = msgspec.json.Decoder(Meta)
_ENCODER = msgspec.json.Encoder()


def parse_object(raw: bytes | Raw, kind: Kind) -> Object:
    """Read one object of `kind` as the API server wrote it.

    The items of a list lack `kind` and `apiVersion`: they are put in front, where a watch has them, so that the same
    object has the same bytes whichever way it came. Raises msgspec.MsgspecError for anything that is no object with
    a name.
    """
    fields = _FIELDS.decode(raw)
    if "metadata" not in fields:
        raise msgspec.ValidationError(f"an object of kind {kind.kind} without metadata")
    metadata = _FIELDS.decode(fields["metadata"])
    metadata.pop("managedFields", None)
    encoded = _ENCODER.encode(metadata)
    fields["metadata"] = Raw(encoded)
    if "kind" not in fields or "apiVersion" not in fields:
        named = {"kind": Raw(_ENCODER.encode(kind.api_kind)), "apiVersion": Raw(_ENCODER.encode(kind.api_version))}
        fields = {**named, **fields}
    return Object(_META.decode(encoded), _ENCODER.encode(fields))


class _Name(Struct, frozen=True):
    name: str = "?"
    namespace: str = "?"


class _Named(Struct):
    metadata: _Name = _Name()


def key_of(raw: bytes | Raw) -> tuple[str, str]:
    """(namespace, name) of an object that `parse_object` could not read; "?" for what it lacks."""
    try:
        found = msgspec.json.decode(raw, type=_Named).metadata
    except msgspec.MsgspecError:
        return "?", "?"
    return found.namespace, found.name
