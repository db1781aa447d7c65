"""The committed CRDs against `crd-fields.tsv` (kind, path, type and attributes of each field) and the types."""

import csv
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from raybus.api.crdgen.core import structural, undescribed
from raybus.api.crdgen.crd import RESOURCES, Resource, crd_of

Row = tuple[str, str, str, str]
Node = dict[str, Any]

ROOT = Path(__file__).parents[2]
CRDS = ROOT / "charts" / "raybus-crds" / "crds"
DEFINITIONS: dict[str, Node] = json.loads((ROOT / "tools" / "crdgen" / "core_schemas.json").read_text())["definitions"]
POD_TEMPLATES = ("template", "submitterPodTemplate")
SCALARS = ("default", "minimum", "minLength", "maxLength", "pattern", "format")
# A request to etcd may have 1.5 MB; the object is stored as JSON together with its managed fields.
MOST_BYTES = 1_000_000


def wanted() -> set[Row]:
    with (Path(__file__).with_name("crd-fields.tsv")).open(newline="") as lines:
        return {(row[0], row[1], row[2], row[3]) for row in csv.reader(lines, "excel-tab", quoting=csv.QUOTE_NONE)}


@cache
def committed(resource: Resource) -> Node:
    crd: Node = yaml.load((CRDS / f"ray.io_{resource.plural}.yaml").read_text(), yaml.CSafeLoader)
    return crd


def schema(crd: Node, version: str = "v1") -> Node:
    versions = {entry["name"]: entry for entry in crd["spec"]["versions"]}
    found: Node = versions[version]["schema"]["openAPIV3Schema"]
    return found


def children(path: str, node: Node) -> Iterator[tuple[str, Node, bool]]:
    """(path, node, required) of the fields directly below `node`; `[]` stands for items and `{}` for map values."""
    for name, child in node.get("properties", {}).items():
        yield f"{path}.{name}".lstrip("."), child, name in node.get("required", ())
    for key, mark in (("items", "[]"), ("additionalProperties", "{}")):
        if key in node:
            yield path + mark, node[key], False


def is_pod_template(path: str) -> bool:
    return path.rpartition(".")[2] in POD_TEMPLATES


def fields(path: str, node: Node) -> Iterator[tuple[str, Node, bool]]:
    """All fields below `node`; a pod template is one field."""
    for below, child, required in children(path, node):
        yield below, child, required
        if not is_pod_template(below):
            yield from fields(below, child)


def type_of(path: str, node: Node) -> str:
    if is_pod_template(path):
        return "PodTemplateSpec"
    return "int-or-string" if node.get("x-kubernetes-int-or-string") else str(node["type"])


def attributes(node: Node, required: bool) -> str:
    found = ["required"] if required else []
    if "x-kubernetes-list-type" in node:
        keys = ",".join(node.get("x-kubernetes-list-map-keys", ()))
        found.append(f"list={node['x-kubernetes-list-type']}" + (f":{keys}" if keys else ""))
    if "enum" in node:
        found.append("enum=" + "|".join(node["enum"]))
    found += [f"{key}={node[key]}" for key in SCALARS if key in node]
    if "x-kubernetes-validations" in node:
        found.append(f"rules={len(node['x-kubernetes-validations'])}")
    return ";".join(found)


def rows(kind: str, node: Node) -> set[Row]:
    return {
        (kind, path, type_of(path, child), attributes(child, required)) for path, child, required in fields("", node)
    }


@pytest.fixture(params=RESOURCES, ids=lambda resource: resource.plural)
def resource(request: pytest.FixtureRequest) -> Resource:
    found: Resource = request.param
    return found


def test_every_field_is_as_upstream_has_it(resource: Resource) -> None:
    kind = resource.struct.__name__
    expected = {row for row in wanted() if row[0] == kind}
    found = rows(kind, schema(committed(resource)))
    assert expected
    assert sorted(found ^ expected) == []


def test_the_table_of_fields_has_no_other_kinds() -> None:
    assert {row[0] for row in wanted()} == {resource.struct.__name__ for resource in RESOURCES}


def test_the_committed_crd_is_what_the_types_give(resource: Resource) -> None:
    assert committed(resource) == crd_of(resource, DEFINITIONS), "run `make crds` and commit the result"


def test_v1alpha1_is_served_with_the_schema_of_v1_but_not_stored(resource: Resource) -> None:
    v1, *older = committed(resource)["spec"]["versions"]
    assert (v1["name"], v1["served"], v1["storage"], v1.get("deprecated")) == ("v1", True, True, None)
    assert [entry["name"] for entry in older] == list(resource.deprecated)
    for entry in older:
        assert (entry["served"], entry["storage"], entry["deprecated"]) == (True, False, True)
        assert "ray.io/v1" in entry["deprecationWarning"]
        assert entry["schema"] == v1["schema"]


def test_every_field_says_what_it_means(resource: Resource) -> None:
    silent = [
        path
        for path, child, _ in fields("", schema(committed(resource)))
        if not child.get("description") and not path.endswith(("[]", "{}")) and path != "metadata"
    ]
    inherited = [path for path in silent if ".metadata" not in path]
    assert inherited == []


def test_pod_templates_have_the_full_core_schema(resource: Resource) -> None:
    expected = undescribed(structural("core.v1.PodTemplateSpec", DEFINITIONS))
    found = [child for path, child, _ in fields("", schema(committed(resource))) if is_pod_template(path)]
    assert len(found) in (2, 3)
    assert all(template == expected | {"description": template["description"]} for template in found)


def test_lists_in_pod_templates_are_merged_by_their_keys() -> None:
    spec = structural("core.v1.PodTemplateSpec", DEFINITIONS)["properties"]["spec"]["properties"]
    container = spec["containers"]["items"]["properties"]
    keys = {
        name: node.get("x-kubernetes-list-map-keys")
        for name, node in {**spec, **container}.items()
        if node.get("x-kubernetes-list-type") == "map"
    }
    assert keys["containers"] == ["name"]
    assert keys["volumes"] == ["name"]
    assert keys["env"] == ["name"]
    assert keys["ports"] == ["containerPort", "protocol"]
    assert keys["volumeMounts"] == ["mountPath"]
    assert keys["topologySpreadConstraints"] == ["topologyKey", "whenUnsatisfiable"]


def test_keys_of_list_maps_are_always_there(resource: Resource) -> None:
    def walk(node: Node) -> Iterator[tuple[Node, str]]:
        for key in node.get("x-kubernetes-list-map-keys", ()):
            yield node["items"], key
        for _, child, _ in children("", node):
            yield from walk(child)

    for item, key in walk(schema(committed(resource))):
        assert key in item.get("required", ()) or "default" in item["properties"][key]


def test_the_crd_fits_into_etcd(resource: Resource) -> None:
    assert len(json.dumps(committed(resource), separators=(",", ":"))) < MOST_BYTES


NAMES_AND_COLUMNS = {
    "rayclusters": "desired workers,available workers,cpus,memory,gpus,tpus,status,age,head pod IP,head service IP",
    "rayjobs": "job status,deployment status,ray cluster name,start time,end time,age",
    "rayservices": "service status,num serve endpoints",
    "raycronjobs": "schedule,timezone,last schedule,age,suspend",
}


def test_what_tools_read_beside_the_schema_is_as_upstream_has_it(resource: Resource) -> None:
    spec = committed(resource)["spec"]
    assert spec["scope"] == "Namespaced"
    assert spec["names"]["categories"] == ["all"]
    assert "shortNames" not in spec["names"]
    for version in spec["versions"]:
        assert version["subresources"] == {"status": {}}
        names = [column["name"] for column in version["additionalPrinterColumns"]]
        assert ",".join(names) == NAMES_AND_COLUMNS[resource.plural]
