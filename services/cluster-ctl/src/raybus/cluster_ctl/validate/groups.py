"""Rules of the head group and the worker groups (contract objects §7.2 rules 1-8)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from raybus.api.cel import before, in_order, text, texts
from raybus.api.rules import Cel, Each, Found, NotInCel, Rule
from raybus.api.v1 import RayCluster, WorkerGroupSpec
from raybus.cluster_ctl.build.probes import version_of
from raybus.cluster_ctl.validate.paths import PART_CONTAINERS, WHERE, Part, autoscaler_v2, containers, parts, where

_FROM_RESOURCES = ("num-cpus", "num-gpus", "memory", "resources")
_PRIORITY_SINCE = (2, 56, 0)

_NAME = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
_PREFIX = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_KEY = f"({_PREFIX}/)?{_NAME}"
_PREFIX_LENGTH = 253

_TWICE = f"{texts(_FROM_RESOURCES)}.filter(name, part.?rayStartParams[?name].orValue('') != '')"
_BAD_KEY = f"!key.matches({text(f'^{_KEY}$')}) || key.indexOf('/') > {_PREFIX_LENGTH}"
_BAD_VALUE = f"!part.labels[key].matches({text(f'^({_NAME})?$')})"
_BAD_LABELS = f"part.?labels.orValue({{}}).filter(key, {_BAD_KEY} || {_BAD_VALUE})"
_KEY_TEXT = "'label key \\'' + key + '\\' is not a qualified name'"
_VALUE_TEXT = "'label \\'' + key + '\\' has an invalid value \\'' + part.labels[key] + '\\''"
_LABEL_TEXTS = f"[{_BAD_KEY} ? {_KEY_TEXT} : '', {_BAD_VALUE} ? {_VALUE_TEXT} : ''].filter(t, t != '').join('; ')"


def _of_group(breaks: Callable[[RayCluster, WorkerGroupSpec], Found]) -> Callable[[Part], Found]:
    """A rule that the head group cannot break."""
    return lambda part: isinstance(part.spec, WorkerGroupSpec) and breaks(part.cluster, part.spec)


def _negative(value: int | None) -> Found:
    return (str(value),) if value is not None and value < 0 else False


def _lacks_bound(cluster: RayCluster, group: WorkerGroupSpec) -> bool:
    return not cluster.spec.enable_in_tree_autoscaling and None in (group.min_replicas, group.max_replicas)


def _crossed(_: RayCluster, group: WorkerGroupSpec) -> Found:
    least, most = group.min_replicas, group.max_replicas
    return (str(least), str(most)) if least is not None and most is not None and least > most else False


def _resources_twice(part: Part) -> Found:
    twice = [name for name in _FROM_RESOURCES if part.spec.ray_start_params.get(name)]
    return (", ".join(twice),) if part.spec.resources and twice else False


def _bad_labels(part: Part) -> Found:
    problems = list(_label_problems(part.spec.labels))
    return ("; ".join(problems),) if problems else False


def _label_problems(labels: Mapping[str, str]) -> Iterable[str]:
    for key, value in sorted(labels.items()):
        if not re.fullmatch(_KEY, key) or key.find("/") > _PREFIX_LENGTH:
            yield f"label key '{key}' is not a qualified name"
        if value and not re.fullmatch(_NAME, value):
            yield f"label '{key}' has an invalid value '{value}'"


def _older_than_priority(cluster: RayCluster, group: WorkerGroupSpec) -> bool:
    version = version_of(cluster.spec.ray_version)
    return bool(group.priority) and (version is None or version < _PRIORITY_SINCE)


def _repeated(cluster: RayCluster) -> Found:
    names = [group.group_name for group in cluster.spec.worker_group_specs]
    return next(((name,) for name in names if names.count(name) > 1), False)


GROUPS = Each(
    "nodeGroups",
    parts,
    where,
    "variables.parts",
    WHERE,
    (
        Rule(
            "{where} should have at least one container",
            lambda part: not containers(part.spec.template),
            Cel(f"size({PART_CONTAINERS}) == 0"),
        ),
        Rule(
            "{where} must set both minReplicas and maxReplicas when autoscaling is disabled",
            _of_group(_lacks_bound),
            NotInCel("the defaults of the CRD fill both in"),
        ),
        Rule(
            "{where} has negative minReplicas {}",
            _of_group(lambda _, group: _negative(group.min_replicas)),
            Cel("part.?minReplicas.orValue(0) < 0", ("string(part.minReplicas)",)),
        ),
        Rule(
            "{where} has negative maxReplicas {}",
            _of_group(lambda _, group: _negative(group.max_replicas)),
            Cel("part.?maxReplicas.orValue(0) < 0", ("string(part.maxReplicas)",)),
        ),
        Rule(
            "{where} has minReplicas {} greater than maxReplicas {}",
            _of_group(_crossed),
            Cel(
                "has(part.minReplicas) && has(part.maxReplicas) && part.minReplicas > part.maxReplicas",
                ("string(part.minReplicas)", "string(part.maxReplicas)"),
            ),
        ),
        Rule(
            "{where} sets both resources and rayStartParams {}: use one of them",
            _resources_twice,
            Cel(f"size(part.?resources.orValue({{}})) > 0 && size({_TWICE}) > 0", (f"{_TWICE}.join(', ')",)),
        ),
        Rule(
            "{where}: rayStartParams must not contain labels, use the group's labels field",
            lambda part: "labels" in part.spec.ray_start_params,
            Cel("'labels' in part.?rayStartParams.orValue({})"),
        ),
        Rule(
            "{where}: {}",
            _bad_labels,
            Cel(f"size({_BAD_LABELS}) > 0", (f"{in_order(_BAD_LABELS)}.map(key, {_LABEL_TEXTS}).join('; ')",)),
            about="labels that Kubernetes would not take",
        ),
        Rule(
            "{where} has negative idleTimeoutSeconds {}",
            _of_group(lambda _, group: _negative(group.idle_timeout_seconds)),
            Cel("part.?idleTimeoutSeconds.orValue(0) < 0", ("string(part.idleTimeoutSeconds)",)),
        ),
        Rule(
            "{where} sets idleTimeoutSeconds, which needs autoscaler version v2",
            _of_group(lambda cluster, group: group.idle_timeout_seconds is not None and not autoscaler_v2(cluster)),
            Cel("has(part.idleTimeoutSeconds) && !variables.autoscalerV2"),
        ),
        Rule(
            "{where} sets priority, which needs rayVersion 2.56.0 or later",
            _of_group(_older_than_priority),
            Cel(f"part.?priority.orValue(0) != 0 && {before(2, 56)}"),
        ),
        Rule(
            "{where} sets priority, which needs autoscaler version v2",
            _of_group(lambda cluster, group: bool(group.priority) and not autoscaler_v2(cluster)),
            Cel("part.?priority.orValue(0) != 0 && !variables.autoscalerV2"),
        ),
    ),
)
"""The head, then group after group, each in the order of rule 6."""

_REPEATED = "variables.groupNames.filter(n, variables.groupNames.indexOf(n) != variables.groupNames.lastIndexOf(n))"
DISTINCT_NAMES: Rule[RayCluster] = Rule(
    "worker group names must be unique, repeated: {}",
    _repeated,
    Cel(f"size({_REPEATED}) > 0", (f"{_REPEATED}[0]",)),
)
"""Two groups of one name would count and delete each other's pods (ADR 0052)."""
