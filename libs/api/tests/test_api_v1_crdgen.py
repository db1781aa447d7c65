"""Turning types and Kubernetes' definitions into CRD schemas, on small examples."""

from typing import Annotated, Any

import pytest
from msgspec import Struct

from raybus.api.crdgen.core import merged, short_name, structural, undescribed
from raybus.api.crdgen.schema import schema_of
from raybus.api.v1 import Quantity, RawObject, Time
from raybus.api.v1._doc import Int32, doc, list_map, rules

DEFINITIONS: dict[str, dict[str, Any]] = {
    "core.v1.Outer": {
        "type": "object",
        "description": "Outer.",
        "required": ["inner", "count"],
        "properties": {
            "inner": {
                "allOf": [{"$ref": "#/components/schemas/io.k8s.api.core.v1.Inner"}],
                "default": {},
                "description": "An inner one.",
            },
            "count": {"type": "integer", "format": "int32", "default": 0},
            "protocol": {"type": "string", "default": "TCP"},
            "hint": {"type": "string", "default": ""},
            "entries": {
                "type": "array",
                "items": {"$ref": "#/components/schemas/io.k8s.api.core.v1.Inner"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "x-kubernetes-patch-strategy": "merge",
            },
        },
    },
    "core.v1.Inner": {"type": "object", "description": "Inner.", "properties": {"name": {"type": "string"}}},
}


def test_references_are_expanded_and_foreign_keywords_dropped() -> None:
    inner = {"type": "object", "description": "Inner.", "properties": {"name": {"type": "string"}}}
    assert structural("core.v1.Outer", DEFINITIONS) == {
        "type": "object",
        "description": "Outer.",
        "required": ["count", "inner"],
        "properties": {
            "inner": inner | {"description": "An inner one."},
            "count": {"type": "integer", "format": "int32"},
            "protocol": {"type": "string", "default": "TCP"},
            "hint": {"type": "string", "default": ""},
            "entries": {
                "type": "array",
                "items": inner,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
            },
        },
    }


def test_a_definition_that_is_missing_is_named() -> None:
    with pytest.raises(KeyError, match=r"core\.v1\.Absent"):
        structural("core.v1.Absent", DEFINITIONS)


def test_descriptions_go_but_a_property_of_that_name_stays() -> None:
    node = {"description": "x", "properties": {"description": {"type": "string", "description": "y"}}}
    assert undescribed(node) == {"properties": {"description": {"type": "string"}}}


MERGES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "values replace and add": ({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 3, "c": 4}),
    "null removes": ({"a": 1, "b": 2}, {"a": None, "x": None}, {"b": 2}),
    "objects merge": ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
}


@pytest.mark.parametrize("case", MERGES)
def test_merge_patch(case: str) -> None:
    node, patch, expected = MERGES[case]
    assert merged(node, patch) == expected


@pytest.mark.parametrize(
    "name", ["#/components/schemas/io.k8s.api.core.v1.Pod", "io.k8s.api.core.v1.Pod", "core.v1.Pod"]
)
def test_short_names(name: str) -> None:
    assert short_name(name) == "core.v1.Pod"


class Part(Struct, kw_only=True, rename="camel"):
    """A part."""

    some_name: Annotated[str, doc("Its name.", required=True)] = ""


class Whole(Struct, kw_only=True, rename="camel"):
    """The first paragraph,
    over two lines.

    Not this one.
    """

    count: Annotated[Int32 | None, doc("How many.", default=1, minimum=0)] = None
    size: Annotated[Quantity | None, doc("How large.")] = None
    since: Annotated[Time, doc("Since when.", nullable=True)] = ""
    share: Annotated[float, doc("Share.", **rules(("self <= 1.0", "at most 1")))] = 0.0
    parts: Annotated[tuple[Part, ...], doc("Its parts.", **list_map("someName"))] = ()
    labels: Annotated[dict[str, str], doc("Labels.")] = {}
    raw: Annotated[RawObject | None, doc("As Kubernetes has it.", core="core.v1.Inner")] = None
    raws: Annotated[tuple[RawObject, ...], doc("Many of these.", core="core.v1.Inner")] = ()


def test_a_type_becomes_a_structural_schema() -> None:
    inner = {"type": "object", "properties": {"name": {"type": "string"}}}
    schema = schema_of(Whole, DEFINITIONS)
    properties = schema.pop("properties")
    size = properties.pop("size")
    assert schema == {"description": "The first paragraph, over two lines.", "type": "object"}
    assert size["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert size["description"] == "How large."
    assert properties == {
        "count": {"type": "integer", "format": "int32", "default": 1, "minimum": 0, "description": "How many."},
        "since": {"type": "string", "format": "date-time", "nullable": True, "description": "Since when."},
        "share": {
            "type": "number",
            "description": "Share.",
            "x-kubernetes-validations": [{"rule": "self <= 1.0", "message": "at most 1"}],
        },
        "parts": {
            "type": "array",
            "description": "Its parts.",
            "items": {
                "type": "object",
                "properties": {"someName": {"type": "string", "description": "Its name."}},
                "required": ["someName"],
            },
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["someName"],
        },
        "labels": {"type": "object", "additionalProperties": {"type": "string"}, "description": "Labels."},
        "raw": inner | {"description": "As Kubernetes has it."},
        "raws": {"type": "array", "items": inner | {"description": "Inner."}, "description": "Many of these."},
    }


class Odd(Struct):
    """Has a field that no CRD can express."""

    either: Annotated[int | str | None, doc("Number or text, but no quantity.")] = None


class Loose(Struct):
    """Has a field without a type."""

    anything: Annotated[Any, doc("Anything.")] = None


@pytest.mark.parametrize("struct", [Odd, Loose])
def test_a_type_without_a_schema_is_an_error_that_says_what_to_do(struct: type[Struct]) -> None:
    with pytest.raises(TypeError, match="no CRD schema"):
        schema_of(struct, DEFINITIONS)
