"""Checks of the head group and the worker groups (contract objects §7.2 rules 1-8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster, WorkerGroupSpec
from raybus.cluster_ctl.build.probes import version_of

_FROM_RESOURCES = ("num-cpus", "num-gpus", "memory", "resources")
_PRIORITY_SINCE = (2, 56, 0)
_V2_ENV = "RAY_enable_autoscaler_v2"

_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_LENGTH, _PREFIX_LENGTH = 63, 253

GroupCheck = Callable[[RayCluster, WorkerGroupSpec], str | None]


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
    return (options is not None and options.version == "v2") or head_env(cluster).get(_V2_ENV) in ("1", "true")


def head_has_containers(cluster: RayCluster) -> str | None:
    """Rule 1."""
    if containers(cluster.spec.head_group_spec.template):
        return None
    return "headGroupSpec should have at least one container"


def head_resources_once(cluster: RayCluster) -> str | None:
    """Rule 2 for the head."""
    head = cluster.spec.head_group_spec
    return _resources_twice("headGroupSpec", head.resources, head.ray_start_params)


def head_labels(cluster: RayCluster) -> str | None:
    """Rule 3 for the head."""
    head = cluster.spec.head_group_spec
    return _labels("headGroupSpec", head.labels, head.ray_start_params)


def worker_groups(cluster: RayCluster) -> str | None:
    """Rules 4-8, group after group (rule 6 gives their order inside a group)."""
    for group in cluster.spec.worker_group_specs:
        for check in _GROUP_CHECKS:
            if (problem := check(cluster, group)) is not None:
                return problem
    return None


def distinct_names(cluster: RayCluster) -> str | None:
    """Two groups of one name would count and delete each other's pods (ADR 0052)."""
    names = [group.group_name for group in cluster.spec.worker_group_specs]
    twice = sorted({name for name in names if names.count(name) > 1})
    return f"worker group names must be unique, repeated: {', '.join(twice)}" if twice else None


def _has_containers(cluster: RayCluster, group: WorkerGroupSpec) -> str | None:
    return None if containers(group.template) else f"worker group {group.group_name} should have at least one container"


def _bounds(cluster: RayCluster, group: WorkerGroupSpec) -> str | None:
    name, least, most = group.group_name, group.min_replicas, group.max_replicas
    if not cluster.spec.enable_in_tree_autoscaling and (least is None or most is None):
        return f"worker group {name} must set both minReplicas and maxReplicas when autoscaling is disabled"
    for field, value in (("minReplicas", least), ("maxReplicas", most)):
        if value is not None and value < 0:
            return f"worker group {name} has negative {field} {value}"
    if least is not None and most is not None and least > most:
        return f"worker group {name} has minReplicas {least} greater than maxReplicas {most}"
    return None


def _group_resources_once(cluster: RayCluster, group: WorkerGroupSpec) -> str | None:
    return _resources_twice(f"worker group {group.group_name}", group.resources, group.ray_start_params)


def _group_labels(cluster: RayCluster, group: WorkerGroupSpec) -> str | None:
    return _labels(f"worker group {group.group_name}", group.labels, group.ray_start_params)


def _idle_timeout(cluster: RayCluster, group: WorkerGroupSpec) -> str | None:
    timeout = group.idle_timeout_seconds
    if timeout is None:
        return None
    if timeout < 0:
        return f"worker group {group.group_name} has negative idleTimeoutSeconds {timeout}"
    if not autoscaler_v2(cluster):
        return f"worker group {group.group_name} sets idleTimeoutSeconds, which needs autoscaler version v2"
    return None


def _priority(cluster: RayCluster, group: WorkerGroupSpec) -> str | None:
    if not group.priority:
        return None
    version = version_of(cluster.spec.ray_version)
    if version is None or version < _PRIORITY_SINCE:
        return f"worker group {group.group_name} sets priority, which needs rayVersion 2.56.0 or later"
    if not autoscaler_v2(cluster):
        return f"worker group {group.group_name} sets priority, which needs autoscaler version v2"
    return None


_GROUP_CHECKS: tuple[GroupCheck, ...] = (
    _has_containers,
    _bounds,
    _group_resources_once,
    _group_labels,
    _idle_timeout,
    _priority,
)


def _resources_twice(where: str, resources: Mapping[str, str], params: Mapping[str, str]) -> str | None:
    twice = [name for name in _FROM_RESOURCES if params.get(name)]
    if not resources or not twice:
        return None
    return f"{where} sets both resources and rayStartParams {', '.join(twice)}: use one of them"


def _labels(where: str, labels: Mapping[str, str], params: Mapping[str, str]) -> str | None:
    if "labels" in params:
        return f"{where}: rayStartParams must not contain labels, use the group's labels field"
    problems = list(_label_problems(labels))
    return f"{where}: {'; '.join(problems)}" if problems else None


def _label_problems(labels: Mapping[str, str]) -> Iterable[str]:
    for key, value in sorted(labels.items()):
        prefix, slash, name = key.rpartition("/")
        if not _fits(name, _NAME) or (slash and (len(prefix) > _PREFIX_LENGTH or not _PREFIX.fullmatch(prefix))):
            yield f"label key {key!r} is not a qualified name"
        if value and not _fits(value, _NAME):
            yield f"label {key!r} has an invalid value {value!r}"


def _fits(text: str, form: re.Pattern[str]) -> bool:
    return len(text) <= _LABEL_LENGTH and form.fullmatch(text) is not None
