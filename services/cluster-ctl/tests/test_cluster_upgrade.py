"""upgradeStrategy Recreate: what is compared, and what goes first (contract reconcile §9, ADR 0120)."""

from typing import Any

import pytest

from raybus.api.decision import CreatePods, Decision, Delete, Patch
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import VERSION, ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs())
NOW = Instant(1_800_000_000.0)
HASH, BY = "ray.io/upgrade-strategy-recreate-hash", "ray.io/kuberay-version"
RECREATE = {"upgradeStrategy": {"type": "Recreate"}}


def decide(cluster: kit.Json, *children: kit.Json) -> Decision:
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, cluster, *children))
    assert value is not None
    return CONTROLLER.decide(value, NOW, CONTROLLER.knobs)


def stamp_of(cluster: kit.Json) -> str:
    """The stamp that a head made now would carry."""
    (create,) = [intent for intent in decide(cluster).intents if isinstance(intent, CreatePods)]
    stamp: str = create.template["metadata"]["annotations"][HASH]
    return stamp


def head(cluster: kit.Json, **annotations: str) -> kit.Json:
    pod = kit.head(cluster, "h", **kit.READY)
    return {**pod, "metadata": {**pod["metadata"], "annotations": annotations}}


def deleted(decision: Decision) -> list[str]:
    return [intent.ref.name for intent in decision.intents if isinstance(intent, Delete)]


def test_workers_go_first_and_the_head_with_its_stamp_last() -> None:
    cluster = kit.raycluster("c", kit.group("w", 1), spec=RECREATE)
    service, old = kit.head_service(cluster), head(cluster, **{HASH: "OLD", BY: VERSION})
    worker = kit.worker(cluster, "p", "w", **kit.READY)
    assert deleted(decide(cluster, service, old, worker)) == ["p"]
    then = decide(cluster, service, old, kit.terminating(worker))
    assert deleted(then) == ["h"]
    (delete,) = then.intents
    assert isinstance(delete, Delete) and delete.done is not None and delete.done.reason == Reason.DELETED_POD
    assert not decide(cluster, service, kit.terminating(old), kit.terminating(worker)).intents


def test_a_head_of_another_operator_is_stamped_anew() -> None:
    cluster = kit.raycluster("c", spec=RECREATE)
    (patch,) = decide(cluster, kit.head_service(cluster), head(cluster, **{HASH: "OLD", BY: "v1.7.0"})).intents
    assert isinstance(patch, Patch)
    assert {op["value"] for op in patch.operations} == {VERSION, stamp_of(kit.raycluster("c"))}


@pytest.mark.parametrize("strategy", [None, {"type": "None"}])
def test_without_the_strategy_nothing_is_compared(strategy: Any) -> None:
    cluster = kit.raycluster("c", spec={"upgradeStrategy": strategy})
    assert not decide(cluster, kit.head_service(cluster), head(cluster, **{HASH: "OLD", BY: VERSION})).intents


def test_a_head_without_a_stamp_is_left_alone() -> None:
    cluster = kit.raycluster("c", spec=RECREATE)
    assert not decide(cluster, kit.head_service(cluster), head(cluster)).intents


def test_suspending_and_resuming_asks_for_no_new_pods() -> None:
    plain = stamp_of(kit.raycluster("c"))
    assert stamp_of(kit.raycluster("c", spec={"suspend": False})) == plain
    assert stamp_of(kit.raycluster("c", spec={"rayVersion": "2.55.0"})) != plain
