"""Kubernetes' own OpenAPI v3 definitions, turned into nodes of a structural CRD schema (pure).

A CRD may hold no references and only the keywords that the API server knows for structural schemas, so every `$ref` is
expanded in place. What the published definitions do not say, but the API server's Go code or upstream's CRDs do, is a
row of `REPLACEMENTS` or `OVERLAYS`.
"""

from collections.abc import Mapping
from typing import Any

from raybus.api.v1._doc import QUANTITY_PATTERN

Node = dict[str, Any]
Definitions = Mapping[str, Node]

_CORE = "core.v1."
_META = "apimachinery.pkg.apis.meta.v1."
_REF_PREFIX = "#/components/schemas/"
_NAME_PREFIXES = ("io.k8s.api.", "io.k8s.")

_INT_OR_STRING: Node = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_TEXT: Node = {"type": "string"}
_TEXT_MAP: Node = {"type": "object", "additionalProperties": _TEXT}

EMBEDDED_META: Node = {
    "type": "object",
    "properties": {
        "annotations": _TEXT_MAP,
        "finalizers": {"type": "array", "items": _TEXT},
        "labels": _TEXT_MAP,
        "name": _TEXT,
        "namespace": _TEXT,
    },
}
"""Metadata of an embedded pod template or Service: anything else, such as `generateName`, is pruned (contract
raycluster-objects §1)."""

REPLACEMENTS: dict[str, Node] = {
    "apimachinery.pkg.api.resource.Quantity": {**_INT_OR_STRING, "pattern": QUANTITY_PATTERN},
    "apimachinery.pkg.util.intstr.IntOrString": _INT_OR_STRING,
    _META + "Time": {"type": "string", "format": "date-time"},
    _META + "ObjectMeta": EMBEDDED_META,
}
"""Definitions whose published form is no structural schema."""

_QUALIFIED_NAME = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)

_ATOMIC: Node = {"x-kubernetes-map-type": "atomic"}

OVERLAYS: dict[str, Node] = {
    _META + "Condition": {
        "properties": {
            "type": {"maxLength": 316, "pattern": _QUALIFIED_NAME},
            "status": {"enum": ["True", "False", "Unknown"]},
            "reason": {"minLength": 1, "maxLength": 1024, "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"},
            "message": {"maxLength": 32768},
            "observedGeneration": {"minimum": 0},
        }
    },
    _CORE + "PortStatus": {
        "required": ["error", "port", "protocol"],
        "properties": {"error": {"maxLength": 316, "pattern": _QUALIFIED_NAME}},
    },
    # Upstream's CRDs take these as a whole because Go embeds LocalObjectReference, which is atomic.
    _CORE + "ConfigMapEnvSource": _ATOMIC,
    _CORE + "ConfigMapProjection": _ATOMIC,
    _CORE + "ConfigMapVolumeSource": _ATOMIC,
    _CORE + "SecretEnvSource": _ATOMIC,
    _CORE + "SecretProjection": _ATOMIC,
    # Left to the pod's own defaulting, as upstream does.
    _CORE + "AzureDiskVolumeSource": {"properties": {"cachingMode": {"default": None}, "kind": {"default": None}}},
}
"""Definition -> JSON merge patch (RFC 7386): validations that stand as markers in Go and are missing from the published
OpenAPI, and where upstream's CRDs differ from it."""

_KEPT = (
    "type",
    "format",
    "description",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)


def short_name(name: str) -> str:
    """`io.k8s.api.core.v1.Pod` or `#/components/schemas/…Pod` -> `core.v1.Pod`."""
    name = name.removeprefix(_REF_PREFIX)
    for prefix in _NAME_PREFIXES:
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name


def merged(node: Node, patch: Node) -> Node:
    """`node` after a JSON merge patch (RFC 7386); neither argument is changed."""
    result = dict(node)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(result.get(key, {}), value)
        else:
            result[key] = value
    return result


def structural(name: str, definitions: Definitions) -> Node:
    """The expanded structural schema of one definition.

    Args:
        name: short name, such as `core.v1.PodTemplateSpec`.
        definitions: OpenAPI v3 component schemas by short name.

    Raises:
        KeyError: `name`, or something it refers to, is not among `definitions`.
    """
    if name in REPLACEMENTS:
        return dict(REPLACEMENTS[name])
    return merged(_expand(definitions[name], definitions), OVERLAYS.get(name, {}))


def undescribed(node: Node) -> Node:
    """`node` without any description: three pod templates with theirs would make a CRD of over a megabyte."""
    bare = {key: value for key, value in node.items() if key != "description"}
    for key in ("items", "additionalProperties"):
        if key in bare:
            bare[key] = undescribed(bare[key])
    if "properties" in bare:
        bare["properties"] = {name: undescribed(child) for name, child in bare["properties"].items()}
    return bare


def _expand(source: Node, definitions: Definitions) -> Node:
    reference = source.get("$ref") or next((part["$ref"] for part in source.get("allOf", ())), None)
    node = structural(short_name(reference), definitions) if reference else {}
    node.update({key: source[key] for key in _KEPT if key in source})
    required = source.get("required", [])
    if "properties" in source:
        node["properties"] = {
            field: _property(child, field in required, definitions) for field, child in source["properties"].items()
        }
    if required:
        node["required"] = sorted(required)
    for key in ("items", "additionalProperties"):
        if key in source:
            node[key] = _expand(source[key], definitions)
    return node


def _property(source: Node, required: bool, definitions: Definitions) -> Node:
    """A property with its default, unless that only says what Go's zero value of a required field or a struct is."""
    node = _expand(source, definitions)
    default = source.get("default")
    if default is not None and default != {} and not (required and not default):
        node["default"] = default
    return node
