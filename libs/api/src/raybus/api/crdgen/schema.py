"""A msgspec type of raybus.api.v1, turned into a node of a structural CRD schema (pure)."""

from typing import Any

from msgspec import inspect

from raybus.api.crdgen.core import Definitions, Node, merged, structural, undescribed
from raybus.api.v1._doc import CORE, REQUIRED

_POD_TEMPLATE = "core.v1.PodTemplateSpec"
_PLAIN: dict[type[inspect.Type], str] = {
    inspect.StrType: "string",
    inspect.BoolType: "boolean",
    inspect.IntType: "integer",
    inspect.FloatType: "number",
}


def schema_of(struct: type[Any], definitions: Definitions) -> Node:
    """The schema of one kind, described by its docstring.

    Args:
        struct: a msgspec Struct whose fields are annotated with `raybus.api.v1._doc.doc`.
        definitions: Kubernetes' OpenAPI definitions by short name, for the raw objects inside.

    Raises:
        TypeError: a field has a type that no CRD can express.
        KeyError: a field names a Kubernetes definition that is not among `definitions`.
    """
    node = _node(inspect.type_info(struct), {}, definitions)
    return {"description": _first_paragraph(struct), **node}


def _first_paragraph(struct: type[Any]) -> str:
    return " ".join((struct.__doc__ or "").split("\n\n")[0].split())


def _node(kind: inspect.Type, extra: Node, definitions: Definitions) -> Node:
    """The node of a type under the schema keywords `extra` of the annotations around it."""
    if isinstance(kind, inspect.Metadata):
        return _node(kind.type, {**(kind.extra_json_schema or {}), **extra}, definitions)
    if isinstance(kind, inspect.UnionType):
        return _union(kind, extra, definitions)
    if isinstance(kind, inspect.VarTupleType):
        core = extra.pop(CORE, "")
        items = structural(core, definitions) if core else _node(kind.item_type, {}, definitions)
        return {"type": "array", "items": items, **_keywords(extra)}
    if isinstance(kind, inspect.DictType):
        return _mapping(kind, extra, definitions)
    if isinstance(kind, inspect.StructType):
        return {**_keywords(extra), **_object(kind, definitions)}
    if type(kind) in _PLAIN:
        return {"type": _PLAIN[type(kind)], **_keywords(extra)}
    raise TypeError(f"no CRD schema for {kind}: give the field a type out of {sorted(_PLAIN.values())} or a Struct")


def _keywords(extra: Node) -> Node:
    return {key: value for key, value in extra.items() if key not in (REQUIRED, CORE)}


def _union(kind: inspect.UnionType, extra: Node, definitions: Definitions) -> Node:
    """Optional fields lose their None; `int | str` is the int-or-string of a quantity."""
    members = [member for member in kind.types if not isinstance(member, inspect.NoneType)]
    if len(members) == 1:
        return _node(members[0], extra, definitions)
    if extra.get("x-kubernetes-int-or-string"):
        return {"anyOf": [{"type": "integer"}, {"type": "string"}], **_keywords(extra)}
    raise TypeError(f"no CRD schema for a union of {members}: only optional fields and quantities can be expressed")


def _mapping(kind: inspect.DictType, extra: Node, definitions: Definitions) -> Node:
    core = extra.pop(CORE, "")
    if core:
        node = structural(core, definitions)
        return merged(undescribed(node) if core == _POD_TEMPLATE else node, _keywords(extra))
    return {"type": "object", "additionalProperties": _node(kind.value_type, {}, definitions), **_keywords(extra)}


def _object(kind: inspect.StructType, definitions: Definitions) -> Node:
    extras = {field.encode_name: _extra(field) for field in kind.fields}
    node: Node = {
        "type": "object",
        "properties": {field.encode_name: _node(field.type, {}, definitions) for field in kind.fields},
    }
    required = sorted(name for name, extra in extras.items() if extra.get(REQUIRED))
    if required:
        node["required"] = required
    return node


def _extra(field: inspect.Field) -> Node:
    return (field.type.extra_json_schema or {}) if isinstance(field.type, inspect.Metadata) else {}
