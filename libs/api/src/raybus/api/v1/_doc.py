"""How a field of a custom resource says what it means and which schema rules the CRD carries for it.

`doc` puts both beside the Python type, so that there is one place per field. The schema keywords never become
msgspec constraints: the API server has already enforced them, and an object that slipped past it (written under an
older CRD) must still decode.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

#: Key of the schema extras that marks a field the CRD requires; every Python field has a default all the same.
REQUIRED = "x-raybus-required"
#: Key of the schema extras that names the Kubernetes definition to put in place of an untyped object.
CORE = "x-raybus-core"

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)

#: A raw JSON object: pod templates and other Kubernetes objects that decisions copy whole.
RawObject = dict[str, Any]

Int32 = Annotated[int, Meta(extra_json_schema={"format": "int32"})]
Int64 = Annotated[int, Meta(extra_json_schema={"format": "int64"})]
#: RFC 3339, UTC, whole seconds, as Kubernetes writes it: `2026-01-31T08:00:00Z`.
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
#: A Kubernetes quantity: `"500m"`, `"1Gi"`, `2`.
Quantity = Annotated[
    int | str, Meta(extra_json_schema={"x-kubernetes-int-or-string": True, "pattern": QUANTITY_PATTERN})
]


def doc(text: str, *, required: bool = False, core: str = "", **schema: Any) -> Meta:
    """Meaning of one field for `kubectl explain`, with the schema keywords that its CRD node carries.

    Args:
        text: what the field means, with its unit.
        required: the CRD refuses an object without it.
        core: full name of the Kubernetes definition that types this raw object, such as `core.v1.PodTemplateSpec`;
        for a list, of its items.
        schema: keywords put into the node as they are (`minimum`, `enum`, `default`, `minLength`, …).
    """
    extra: dict[str, Any] = {**schema}
    if required:
        extra[REQUIRED] = True
    if core:
        extra[CORE] = core
    return Meta(description=text, extra_json_schema=extra)


def list_map(*keys: str) -> dict[str, Any]:
    """Schema keywords of a list whose entries are told apart by `keys`, so that two field managers can share it."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}


def rules(*pairs: tuple[str, str]) -> dict[str, Sequence[Mapping[str, str]]]:
    """Schema keyword for CEL rules, each given as (expression, message)."""
    return {"x-kubernetes-validations": [{"rule": rule, "message": message} for rule, message in pairs]}
