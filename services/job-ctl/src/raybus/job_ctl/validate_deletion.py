"""Checks of the deletion block of a RayJob (contract rayjob §6.4)."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

from raybus.api.v1 import DeletionRule, DeletionStrategy, RayJobSpec

_INVALID = "The RayJob spec is invalid: "
_OF_CLUSTER = ("DeleteCluster", "DeleteWorkers")
_ORDER = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")


def deletion_problem(spec: RayJobSpec, gate: bool) -> str:
    """What is wrong with TTL and deletion strategy, "" if nothing. `gate`: RayJobDeletionPolicy is on."""
    if spec.ttl_seconds_after_finished > 0 and not spec.shutdown_after_job_finishes:
        return _INVALID + "a RayJob with shutdownAfterJobFinishes set to false cannot have TTLSecondsAfterFinished"
    strategy = spec.deletion_strategy
    if strategy is None:
        return ""
    if not gate:
        return _INVALID + "deletionStrategy needs the feature gate RayJobDeletionPolicy"
    if strategy.deletion_rules:
        return _rules_problem(spec, strategy)
    if strategy.on_success is None and strategy.on_failure is None:
        return _INVALID + "deletionStrategy needs deletionRules, or both onSuccess and onFailure"
    return _legacy_problem(spec, strategy)


def _legacy_problem(spec: RayJobSpec, strategy: DeletionStrategy) -> str:
    chosen = []
    for field, policy in (("onSuccess", strategy.on_success), ("onFailure", strategy.on_failure)):
        if policy is None:
            return _INVALID + f"deletionStrategy.{field} is missing: onSuccess and onFailure are both needed"
        if not policy.policy:
            return _INVALID + f"deletionStrategy.{field}.policy is missing"
        chosen.append(policy.policy)
    if spec.cluster_selector and any(policy in _OF_CLUSTER for policy in chosen):
        return _INVALID + "DeleteCluster and DeleteWorkers are not possible together with clusterSelector"
    if _autoscaling(spec) and "DeleteWorkers" in chosen:
        return _INVALID + "DeleteWorkers is not possible together with autoscaling"
    if spec.shutdown_after_job_finishes and "DeleteNone" in chosen:
        return _INVALID + "DeleteNone is not possible together with shutdownAfterJobFinishes"
    return ""


def _rules_problem(spec: RayJobSpec, strategy: DeletionStrategy) -> str:
    if spec.shutdown_after_job_finishes:
        return _INVALID + "deletionRules are not possible together with shutdownAfterJobFinishes"
    if strategy.on_success is not None or strategy.on_failure is not None:
        return _INVALID + "deletionRules are not possible together with onSuccess and onFailure"
    own = {i: text for i, rule in enumerate(strategy.deletion_rules) if (text := _rule_problem(spec, rule))}
    sound = [(i, rule) for i, rule in enumerate(strategy.deletion_rules) if i not in own]
    texts = {**own, **dict(_duplicates(sound))}
    lines = [f"deletionRules[{i}]: {text}" for i, text in sorted(texts.items())]
    return "\n".join([*lines, *_ttl_order(sound)])


def _rule_problem(spec: RayJobSpec, rule: DeletionRule) -> str:
    condition = rule.condition
    if (condition.job_status is None) == (condition.job_deployment_status is None):
        return "exactly one of jobStatus and jobDeploymentStatus is needed"
    if condition.ttl_seconds < 0:
        return "ttlSeconds must be 0 or more"
    if spec.cluster_selector and rule.policy in _OF_CLUSTER:
        return f"{rule.policy} is not possible together with clusterSelector"
    if rule.policy == "DeleteWorkers" and _autoscaling(spec):
        return "DeleteWorkers is not possible together with autoscaling"
    return ""


def _when(rule: DeletionRule) -> tuple[str, str]:
    condition = rule.condition
    if condition.job_status is not None:
        return "jobStatus", condition.job_status
    return "jobDeploymentStatus", condition.job_deployment_status or ""


def _duplicates(rules: Sequence[tuple[int, DeletionRule]]) -> Iterator[tuple[int, str]]:
    seen = set()
    for number, rule in rules:
        key = (_when(rule), rule.policy)
        if key in seen:
            yield number, f"a second rule for {rule.policy} and {' '.join(_when(rule))}"
        seen.add(key)


def _ttl_order(rules: Sequence[tuple[int, DeletionRule]]) -> Iterator[str]:
    """Within one condition the workers go first, then the cluster, then the RayJob (equal times allowed)."""
    times: dict[tuple[str, str], dict[str, int]] = {}
    for _, rule in rules:
        times.setdefault(_when(rule), {}).setdefault(rule.policy, rule.condition.ttl_seconds)
    for when, by_policy in times.items():
        present = [policy for policy in _ORDER if policy in by_policy]
        for earlier, later in pairwise(present):
            if by_policy[later] < by_policy[earlier]:
                yield f"for {' '.join(when)}, ttlSeconds of {later} must not be below that of {earlier}"


def _autoscaling(spec: RayJobSpec) -> bool:
    return spec.ray_cluster_spec is not None and bool(spec.ray_cluster_spec.enable_in_tree_autoscaling)
