"""Suspension: atomic, pods only, and the same for one group (contract reconcile §8, §11.2)."""

from raybus.api.decision import CreatePods, Decision, Delete
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


def cluster(suspend: bool | None, *true: str) -> kit.Json:
    conditions = [{"type": kind, "status": "True", "reason": kind} for kind in true]
    return kit.raycluster("c", kit.group("w", 1), spec={"suspend": suspend}, status={"conditions": conditions})


def children(owner: kit.Json) -> tuple[kit.Json, ...]:
    return kit.head_service(owner), kit.head(owner, "h", **kit.READY), kit.worker(owner, "p", "w", **kit.READY)


def true_conditions(decision: Decision) -> set[str]:
    assert decision.status is not None
    return {c["type"] for c in decision.status["conditions"] if c["status"] == "True"}


def test_it_is_announced_before_any_pod_goes() -> None:
    owner = cluster(True)
    decision = decide(owner, *children(owner))
    assert not decision.intents and "RayClusterSuspending" in true_conditions(decision) and not decision.progress


def test_then_all_pods_go_and_services_stay() -> None:
    owner = cluster(True, "RayClusterSuspending")
    decision = decide(owner, *children(owner))
    assert {i.ref.name for i in decision.intents if isinstance(i, Delete)} == {"h", "p"} and decision.urgent
    assert "RayClusterSuspending" in true_conditions(decision)


def test_once_begun_it_goes_on_although_the_spec_changes_its_mind() -> None:
    owner = cluster(False, "RayClusterSuspending")
    service, head, worker = children(owner)
    assert len(decide(owner, service, head, worker).intents) == 2
    assert not decide(owner, service, kit.terminating(head)).intents
    done = decide(owner, service)
    assert true_conditions(done) == {"RayClusterSuspended"} and not done.intents


def test_it_is_told_when_the_last_pod_is_gone() -> None:
    owner = cluster(True, "RayClusterSuspending", "RayClusterProvisioned")
    done = decide(owner, kit.head_service(owner))
    assert [note.reason for note in done.notes] == [Reason.DELETED_POD]
    assert done.status is not None and done.status["state"] == "suspended"
    assert true_conditions(done) == {"RayClusterSuspended"}


def test_only_an_explicit_false_resumes() -> None:
    for suspend in (True, None):
        owner = cluster(suspend, "RayClusterSuspended")
        assert true_conditions(decide(owner, kit.head_service(owner))) == {"RayClusterSuspended"}
    owner = cluster(False, "RayClusterSuspended")
    resumed = decide(owner, kit.head_service(owner))
    assert not resumed.intents and not true_conditions(resumed)
    running = decide({**owner, "status": resumed.status}, kit.head_service(owner))
    assert sum(isinstance(intent, CreatePods) for intent in running.intents) == 2


def test_both_conditions_at_once_are_an_error_of_whoever_wrote_them() -> None:
    owner = cluster(True, "RayClusterSuspending", "RayClusterSuspended")
    decision = decide(owner, *children(owner))
    assert [note.reason for note in decision.notes] == [Reason.INVALID_RAY_CLUSTER_STATUS] and not decision.intents


def test_a_suspended_group_loses_its_pods_and_counts_for_nothing() -> None:
    owner = kit.raycluster("c", kit.group("w", 2, suspend=True))
    decision = decide(owner, *children(owner))
    (delete,) = decision.intents
    assert isinstance(delete, Delete) and delete.ref.name == "p"
    assert (
        delete.done is not None and delete.done.reason == Reason.DELETED_WORKER_POD and "suspended" in delete.done.text
    )
    assert decision.status is not None and "desiredWorkerReplicas" not in decision.status
