"""What the rules of a RayCluster look at, in Python and in CEL (ADR 0133)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from raybus.api.cel import ray_version, text
from raybus.api.decision import Json
from raybus.api.v1 import HeadGroupSpec, RayCluster, WorkerGroupSpec

V2_ENV = "RAY_enable_autoscaler_v2"

SPEC = "object.?spec"
FT_OPTIONS = f"{SPEC}.?gcsFaultToleranceOptions"
AUTOSCALER = f"{SPEC}.?autoscalerOptions"
HEAD_PARAMS = f"{SPEC}.?headGroupSpec.?rayStartParams"
HEAD_POD = f"{SPEC}.?headGroupSpec.?template.?spec"
PART_CONTAINERS = "part.?template.?spec.?containers.orValue([])"
WHERE = "has(part.groupName) ? 'worker group ' + part.groupName : 'headGroupSpec'"

VARIABLES = {
    "groups": f"{SPEC}.?workerGroupSpecs.orValue([])",
    "groupNames": "variables.groups.map(g, g.groupName)",
    "parts": "[has(object.spec) ? dyn(object.spec.headGroupSpec) : dyn({})] + variables.groups",
    "headContainers": f"{HEAD_POD}.?containers.orValue([])",
    "headEnv": "size(variables.headContainers) > 0 ? variables.headContainers[0].?env.orValue([]) : []",
    "autoscaling": f"{SPEC}.?enableInTreeAutoscaling.orValue(false)",
    "autoscalerV2": (
        f"{AUTOSCALER}.?version.orValue('') == 'v2'"
        f" || variables.headEnv.exists(e, e.name == {text(V2_ENV)} && e.?value.orValue('') in ['1', 'true'])"
    ),
    "ftOptions": f"{FT_OPTIONS}.hasValue()",
    "rocksdb": f"{FT_OPTIONS}.?backend.orValue('') == 'rocksdb'",
    "rayVersion": ray_version(f"{SPEC}.?rayVersion"),
}


class Part(NamedTuple):
    """The head group or a worker group, with the cluster around it."""

    cluster: RayCluster
    spec: HeadGroupSpec | WorkerGroupSpec


def parts(cluster: RayCluster) -> list[Part]:
    """The head, then the groups."""
    groups = (Part(cluster, group) for group in cluster.spec.worker_group_specs)
    return [Part(cluster, cluster.spec.head_group_spec), *groups]


def where(part: Part) -> str:
    """The part as sentences name it."""
    return f"worker group {part.spec.group_name}" if isinstance(part.spec, WorkerGroupSpec) else "headGroupSpec"


def containers(template: Json) -> list[Json]:
    """Containers of a pod template; the first is the Ray container."""
    found: list[Json] = (template.get("spec") or {}).get("containers") or []
    return found


def head_env(cluster: RayCluster) -> dict[str, str | None]:
    """Environment of the head's Ray container: name -> literal value, None when it comes from elsewhere."""
    first = containers(cluster.spec.head_group_spec.template)[:1]
    entries = (entry for container in first for entry in container.get("env") or ())
    return {entry["name"]: entry.get("value") for entry in entries}


def autoscaler_v2(cluster: RayCluster) -> bool:
    """Whether version 2 of the autoscaler is chosen, by its option or by the head's environment."""
    options = cluster.spec.autoscaler_options
    return (options is not None and options.version == "v2") or head_env(cluster).get(V2_ENV) in ("1", "true")


def in_head(name: str) -> Callable[[RayCluster], bool]:
    """Whether the head's environment has a variable."""
    return lambda cluster: name in head_env(cluster)


def annotation(name: str) -> str:
    """CEL: an annotation, empty if it is missing."""
    return f"object.metadata.?annotations[?{text(name)}].orValue('')"


def in_head_env(name: str) -> str:
    """The same in CEL."""
    return f"variables.headEnv.exists(e, e.name == {text(name)})"


def head_param(name: str) -> str:
    """CEL: whether a start parameter of the head is set and not empty."""
    return f"{HEAD_PARAMS}[?{text(name)}].orValue('') != ''"
