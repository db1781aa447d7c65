"""RayClusters that are left alone, refused or not supported: said once, where their user looks."""

from typing import Any

import pytest

from raybus.api.decision import Decision
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs())
NOW = Instant(1_800_000_000.0)


def decide(cluster: kit.Json, *children: kit.Json) -> Decision:
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, cluster, *children))
    assert value is not None
    return CONTROLLER.decide(value, NOW, CONTROLLER.knobs)


def env_head(*env: kit.Json) -> kit.Json:
    return {"headGroupSpec": {"template": kit.template(env=list(env))}}


def head(**fields: Any) -> kit.Json:
    return {"headGroupSpec": {"template": kit.template(), **fields}}


def groups(*found: kit.Json, **spec: Any) -> kit.Json:
    return {"workerGroupSpecs": list(found), **spec}


V2 = {"autoscalerOptions": {"version": "v2"}}
INVALID: dict[str, tuple[kit.Json, str]] = {
    "a head without containers": ({"headGroupSpec": {"template": {"spec": {}}}}, "at least one container"),
    "a group without containers": (groups(kit.group("w", 1, template={})), "worker group w should have at least"),
    "bounds the wrong way round": (groups(kit.group("w", 1, minReplicas=3, maxReplicas=1)), "minReplicas 3 greater"),
    "a negative bound": (groups(kit.group("w", 1, minReplicas=-1)), "negative minReplicas -1"),
    "no bound without autoscaling": (groups(kit.group("w", 1, maxReplicas=None)), "both minReplicas and maxReplicas"),
    "resources given twice": (head(resources={"cpu": "1"}, rayStartParams={"num-cpus": "1"}), "num-cpus"),
    "labels as a start parameter": (head(rayStartParams={"labels": "a=b"}), "must not contain labels"),
    "a label that is none": (groups(kit.group("w", 1, labels={"a b": "c", "d": "e f"})), "'a b' is not a qualified"),
    "idle timeout without v2": (groups(kit.group("w", 1, idleTimeoutSeconds=5)), "needs autoscaler version v2"),
    "a negative idle timeout": (groups(kit.group("w", 1, idleTimeoutSeconds=-5), **V2), "negative idleTimeoutSeconds"),
    "priority on an old Ray": (groups(kit.group("w", 1, priority=1), **V2), "rayVersion 2.56.0"),
    "two groups of one name": (groups(kit.group("w", 1), kit.group("w", 1)), "repeated: w"),
    "a Redis address without fault tolerance": (
        env_head({"name": "RAY_REDIS_ADDRESS", "value": "x"}),
        "needs GCS fault tolerance",
    ),
    "a Redis user in the environment": (env_head({"name": "REDIS_USERNAME", "value": "x"}), "redisUsername"),
    "the autoscaler's variable without autoscaling": (
        env_head({"name": "RAY_enable_autoscaler_v2", "value": "1"}),
        "enableInTreeAutoscaling is off",
    ),
    "tokens on an old Ray": ({"authOptions": {"mode": "token"}, "rayVersion": "2.51.0"}, "rayVersion 2.52.0"),
    "a network policy behind its gate": ({"networkPolicy": {}}, "RayClusterNetworkPolicy"),
    "TLS behind its gate": ({"tlsOptions": {"enabled": False}}, "RayClusterMTLS"),
    "history behind its gate": ({"historyServerOptions": {}}, "RayClusterHistoryServer"),
    "RocksDB behind its gate": ({"gcsFaultToleranceOptions": {"backend": "rocksdb"}}, "EmbeddedStorage"),
}


@pytest.mark.parametrize(("spec", "says"), INVALID.values(), ids=INVALID)
def test_an_invalid_spec(spec: kit.Json, says: str) -> None:
    decision = decide(kit.raycluster("c", spec=spec))
    (note,) = decision.notes
    assert (note.type, note.reason, note.action) == ("Warning", Reason.INVALID_RAY_CLUSTER_SPEC, "Validate")
    assert says in note.text and not decision.intents
    assert decision.status is not None and says in decision.status["reason"]
    assert decision.because[0].reason == Reason.INVALID_RAY_CLUSTER_SPEC


NAMES = {
    "too long": "a" * 54,
    "a digit first": "1a",
    "a dash last": "a-",
    "a dot": "a.b",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_an_invalid_name(name: str) -> None:
    (note,) = decide(kit.raycluster(name)).notes
    assert note.reason == Reason.INVALID_RAY_CLUSTER_METADATA


HARMLESS: dict[str, kit.Json] = {
    "suspend written out as false": {"suspend": False},
    "no upgrades": {"upgradeStrategy": {"type": "None"}},
    "authentication switched off": {"authOptions": {"mode": "disabled"}},
    "ourselves as manager": {"managedBy": "ray.io/kuberay-operator"},
}


@pytest.mark.parametrize("spec", HARMLESS.values(), ids=HARMLESS)
def test_what_asks_for_nothing_special_runs(spec: kit.Json) -> None:
    decision = decide(kit.raycluster("c", spec=spec))
    assert decision.intents and not decision.notes


def test_it_is_said_once_and_again_when_the_spec_changes() -> None:
    cluster = kit.raycluster("c", spec={"networkPolicy": {}})
    first = decide(cluster)
    told = {**cluster, "status": first.status}
    second = decide(told)
    assert not second.notes and second.status == first.status
    changed = {**told, "metadata": {**told["metadata"], "generation": 2}}
    third = decide(changed)
    assert third.notes and third.status is not None and third.status["observedGeneration"] == 2


def test_a_running_cluster_that_becomes_invalid_keeps_its_pods_and_its_status() -> None:
    cluster = kit.raycluster("c")
    children = kit.head_service(cluster), kit.head(cluster, "h", **kit.READY)
    ready = decide(cluster, *children).status
    bad = kit.raycluster("c", spec={"networkPolicy": {}}, status=ready, generation=2)
    decision = decide(bad, *children)
    assert not decision.intents and decision.status is not None
    assert (decision.status["state"], decision.status["observedGeneration"]) == ("ready", 2)
    mended = {**cluster, "status": decision.status}
    after = decide(mended, *children).status
    assert after is not None and "reason" not in after


@pytest.mark.parametrize("manager", ["kueue.x-k8s.io/multikueue", ""])
def test_a_cluster_of_another_manager_is_left_alone(manager: str) -> None:
    decision = decide(kit.raycluster("x" * 60, spec={"managedBy": manager}))
    assert not decision.intents and not decision.notes and decision.status is None
    assert decision.because[0].reason == Reason.MANAGED_ELSEWHERE


def test_deletion_comes_before_validation() -> None:
    decision = decide(kit.terminating(kit.raycluster("x" * 60)))
    assert not decision.intents and not decision.notes and decision.status is None
    assert decision.because[0].reason == Reason.DELETION_REQUESTED
