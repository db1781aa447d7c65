"""RayClusters that are left alone, refused or not supported: said once, where their user looks."""

import pytest

from raybus.api.decision import Decision
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit
from raybus.testkit.refused_clusters import AUTH, GROUPS

CONTROLLER = controller(ClusterKnobs())
NOW = Instant(1_800_000_000.0)


def decide(cluster: kit.Json, *children: kit.Json) -> Decision:
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, cluster, *children))
    assert value is not None
    return CONTROLLER.decide(value, NOW, CONTROLLER.knobs)


CLOSED: dict[str, tuple[kit.Json, str]] = {
    "a network policy behind its gate": ({"networkPolicy": {}}, "RayClusterNetworkPolicy"),
    "TLS behind its gate": ({"tlsOptions": {"enabled": False}}, "RayClusterMTLS"),
    "history behind its gate": ({"historyServerOptions": {}}, "RayClusterHistoryServer"),
    "RocksDB behind its gate": ({"gcsFaultToleranceOptions": {"backend": "rocksdb"}}, "EmbeddedStorage"),
}
INVALID = CLOSED | {name: (case.spec, case.says) for name, case in (GROUPS | AUTH).items()}


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
