"""The CustomResourceDefinitions of ray.io: tables of names and columns, schemas from the types (pure)."""

from typing import Any, NamedTuple

from raybus.api.crdgen.core import Definitions, Node
from raybus.api.crdgen.schema import schema_of
from raybus.api.v1 import GROUP, RayCluster, RayCronJob, RayJob, RayService


class Column(NamedTuple):
    """One column of `kubectl get`; priority 1 shows only with `-o wide`."""

    name: str
    type: str
    path: str
    priority: int = 0


class Resource(NamedTuple):
    """One kind with what its CRD says beside the schema. `deprecated`: older versions served with v1's schema."""

    struct: type[Any]
    plural: str
    columns: tuple[Column, ...]
    deprecated: tuple[str, ...] = ("v1alpha1",)


_AGE = Column("age", "date", ".metadata.creationTimestamp")

RESOURCES = (
    Resource(
        RayCluster,
        "rayclusters",
        (
            Column("desired workers", "integer", ".status.desiredWorkerReplicas"),
            Column("available workers", "integer", ".status.availableWorkerReplicas"),
            Column("cpus", "string", ".status.desiredCPU"),
            Column("memory", "string", ".status.desiredMemory"),
            Column("gpus", "string", ".status.desiredGPU"),
            Column("tpus", "string", ".status.desiredTPU", 1),
            Column("status", "string", ".status.state"),
            _AGE,
            Column("head pod IP", "string", ".status.head.podIP", 1),
            Column("head service IP", "string", ".status.head.serviceIP", 1),
        ),
    ),
    Resource(
        RayJob,
        "rayjobs",
        (
            Column("job status", "string", ".status.jobStatus"),
            Column("deployment status", "string", ".status.jobDeploymentStatus"),
            Column("ray cluster name", "string", ".status.rayClusterName"),
            Column("start time", "string", ".status.startTime"),
            Column("end time", "string", ".status.endTime"),
            _AGE,
        ),
    ),
    Resource(
        RayService,
        "rayservices",
        (
            Column("service status", "string", ".status.serviceStatus"),
            Column("num serve endpoints", "string", ".status.numServeEndpoints"),
        ),
    ),
    Resource(
        RayCronJob,
        "raycronjobs",
        (
            Column("schedule", "string", ".spec.schedule"),
            Column("timezone", "string", ".spec.timeZone"),
            Column("last schedule", "date", ".status.lastScheduleTime"),
            _AGE,
            Column("suspend", "boolean", ".spec.suspend"),
        ),
        deprecated=(),
    ),
)


def crd_of(resource: Resource, definitions: Definitions) -> Node:
    """The CustomResourceDefinition of one kind, as it is given to the API server.

    Args:
        resource: a row of `RESOURCES`.
        definitions: Kubernetes' OpenAPI definitions by short name.
    """
    kind = resource.struct.__name__
    schema = schema_of(resource.struct, definitions)
    # The API server knows the metadata of an object itself and refuses a schema for more than its name.
    schema["properties"]["metadata"] = {"type": "object"}
    versions = [_version("v1", resource, schema, {"served": True, "storage": True})]
    versions += [_version(name, resource, schema, _deprecation(name, kind)) for name in resource.deprecated]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "categories": ["all"],
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": resource.plural,
                "singular": kind.lower(),
            },
            "scope": "Namespaced",
            "versions": versions,
        },
    }


def _deprecation(version: str, kind: str) -> Node:
    warning = f"{GROUP}/{version} {kind} is deprecated: write {GROUP}/v1, which has the same fields"
    return {"served": True, "storage": False, "deprecated": True, "deprecationWarning": warning}


def _version(name: str, resource: Resource, schema: Node, state: Node) -> Node:
    return {
        "name": name,
        **state,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in resource.columns],
    }


def _column(column: Column) -> Node:
    node: Node = {"name": column.name, "type": column.type, "jsonPath": column.path}
    return node | {"priority": column.priority} if column.priority else node
