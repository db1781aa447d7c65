"""Rules of the deletion block of a RayJob (contract rayjob §6.4)."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

from raybus.api.cel import texts
from raybus.api.rules import Cel, Found, NotInCel, Rule
from raybus.api.v1 import DeletionPolicy, DeletionRule, DeletionStrategy, RayJobSpec
from raybus.job_ctl.asked import SPEC, Asked, spec_rule

_STRATEGY = f"{SPEC}.?deletionStrategy"
_BY_SCHEMA = NotInCel("the rules of the CRD refuse it")
_OF_CLUSTER = ("DeleteCluster", "DeleteWorkers")
_ORDER = ("DeleteWorkers", "DeleteCluster", "DeleteSelf")


def _gate_closed(asked: Asked) -> bool:
    return asked.spec.deletion_strategy is not None and not asked.knobs.deletion_policy


def _empty(asked: Asked) -> bool:
    strategy = asked.spec.deletion_strategy
    if strategy is None or strategy.deletion_rules:
        return False
    return strategy.on_success is None and strategy.on_failure is None


def _legacy(asked: Asked) -> dict[str, DeletionPolicy | None]:
    """The deprecated policies by field; none at all where there are rules, or no strategy."""
    strategy = asked.spec.deletion_strategy
    if strategy is None or strategy.deletion_rules:
        return {}
    return {"onSuccess": strategy.on_success, "onFailure": strategy.on_failure}


def _chosen(asked: Asked) -> set[str | None]:
    return {policy.policy for policy in _legacy(asked).values() if policy is not None}


def _half(field: str) -> tuple[Rule[Asked], Rule[Asked]]:
    """One deprecated policy needs the other."""

    def lacks_policy(asked: Asked) -> bool:
        policy = _legacy(asked).get(field)
        return policy is not None and not policy.policy

    return (
        spec_rule(
            f"deletionStrategy.{field} is missing: onSuccess and onFailure are both needed",
            lambda asked: field in (legacy := _legacy(asked)) and legacy[field] is None,
            _BY_SCHEMA,
        ),
        spec_rule(
            f"deletionStrategy.{field}.policy is missing",
            lacks_policy,
            Cel(f"{_STRATEGY}.?{field}.hasValue() && {_STRATEGY}.?{field}.?policy.orValue('') == ''"),
        ),
    )


def _rules(breaks: Callable[[RayJobSpec, DeletionStrategy], Found]) -> Callable[[Asked], Found]:
    def check(asked: Asked) -> Found:
        strategy = asked.spec.deletion_strategy
        return strategy is not None and bool(strategy.deletion_rules) and breaks(asked.spec, strategy)

    return check


def _wrong_rules(spec: RayJobSpec, strategy: DeletionStrategy) -> Found:
    problems = _rules_problem(spec, strategy)
    return (problems,) if problems else False


def _rules_problem(spec: RayJobSpec, strategy: DeletionStrategy) -> str:
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


_CHOSEN = f"[{_STRATEGY}.?onSuccess.?policy.orValue(''), {_STRATEGY}.?onFailure.?policy.orValue('')]"

DELETION: tuple[Rule[Asked], ...] = (
    spec_rule(
        "a RayJob with shutdownAfterJobFinishes set to false cannot have TTLSecondsAfterFinished",
        lambda asked: asked.spec.ttl_seconds_after_finished > 0 and not asked.spec.shutdown_after_job_finishes,
        Cel(f"{SPEC}.?ttlSecondsAfterFinished.orValue(0) > 0 && !variables.shutdown"),
    ),
    spec_rule(
        "deletionStrategy needs the feature gate RayJobDeletionPolicy",
        _gate_closed,
        NotInCel("the API server does not know which gates are open"),
    ),
    spec_rule(
        "deletionRules are not possible together with shutdownAfterJobFinishes",
        _rules(lambda spec, _: spec.shutdown_after_job_finishes),
        Cel(f"variables.shutdown && {_STRATEGY}.?deletionRules.hasValue()"),
    ),
    spec_rule(
        "deletionRules are not possible together with onSuccess and onFailure",
        _rules(lambda _, strategy: strategy.on_success is not None or strategy.on_failure is not None),
        _BY_SCHEMA,
    ),
    Rule(
        "{}",
        _rules(_wrong_rules),
        NotInCel("it tells the problems of all rules in several lines, and the message of a policy has one"),
        "deletionRules that contradict each other or the spec",
    ),
    spec_rule("deletionStrategy needs deletionRules, or both onSuccess and onFailure", _empty, _BY_SCHEMA),
    *_half("onSuccess"),
    *_half("onFailure"),
    spec_rule(
        "DeleteCluster and DeleteWorkers are not possible together with clusterSelector",
        lambda asked: bool(asked.spec.cluster_selector) and not _chosen(asked).isdisjoint(_OF_CLUSTER),
        Cel(f"size(variables.selector) > 0 && {_CHOSEN}.exists(policy, policy in {texts(_OF_CLUSTER)})"),
    ),
    spec_rule(
        "DeleteWorkers is not possible together with autoscaling",
        lambda asked: _autoscaling(asked.spec) and "DeleteWorkers" in _chosen(asked),
        Cel(f"{SPEC}.?rayClusterSpec.?enableInTreeAutoscaling.orValue(false) && 'DeleteWorkers' in {_CHOSEN}"),
    ),
    spec_rule(
        "DeleteNone is not possible together with shutdownAfterJobFinishes",
        lambda asked: asked.spec.shutdown_after_job_finishes and "DeleteNone" in _chosen(asked),
        Cel(f"variables.shutdown && 'DeleteNone' in {_CHOSEN}"),
    ),
)
"""TTL and deletion strategy."""
