"""Scaling worker groups and keeping one head: which pods go, which come, under which names."""

from typing import Any

import pytest

from raybus.api.decision import CreatePods, Decision, Delete
from raybus.api.messages import Refusal, Result, fingerprint
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs())
NOW = Instant(1_800_000_000.0)
FAILED = {"phase": "Failed"}


def decide(cluster: kit.Json, *children: kit.Json, **more: Any) -> Decision:
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, cluster, *children, **more))
    assert value is not None
    return CONTROLLER.decide(value, NOW, CONTROLLER.knobs)


def deleted(decision: Decision) -> list[str]:
    return sorted(intent.ref.name for intent in decision.intents if isinstance(intent, Delete))


def created(decision: Decision, kind: str = "worker") -> list[tuple[str, str]]:
    return [
        (slot.name, slot.labels.get("ray.io/worker-group-replica-index", ""))
        for intent in decision.intents
        if isinstance(intent, CreatePods) and intent.template["metadata"]["labels"]["ray.io/node-type"] == kind
        for slot in intent.slots
    ]


def running(cluster: kit.Json, *workers: kit.Json) -> tuple[kit.Json, ...]:
    return kit.head_service(cluster), kit.head(cluster, "c-head-aaaaa", **kit.READY), *workers


SIZES = {
    "replicas are taken as they are": ({"replicas": 3}, 3),
    "replicas below the bound": ({"replicas": 0, "minReplicas": 2}, 2),
    "replicas above the bound": ({"replicas": 9, "maxReplicas": 4}, 4),
    "missing replicas mean the lower bound": ({"replicas": None, "minReplicas": 1}, 1),
    "no hosts mean no pods": ({"replicas": 3, "numOfHosts": 0}, 0),
}


@pytest.mark.parametrize(("group", "pods"), SIZES.values(), ids=SIZES)
def test_size_of_a_group(group: dict[str, Any], pods: int) -> None:
    cluster = kit.raycluster("c", kit.group("w", **{"replicas": 0, **group}))
    assert len(created(decide(cluster, *running(cluster)))) == pods


def test_a_new_cluster_is_made_at_once_and_its_status_waits() -> None:
    decision = decide(kit.raycluster("c", kit.group("w", 2)))
    assert len(created(decision, "head")) == 1 and len(created(decision)) == 2
    assert [type(intent).__name__ for intent in decision.intents] == ["Create", "CreatePods", "CreatePods"]
    assert decision.status is None


def test_names_are_the_same_for_every_replica_of_the_controller() -> None:
    cluster = kit.raycluster("c", kit.group("w", 2))
    assert created(decide(cluster)) == created(decide(cluster))
    other = kit.raycluster("c", kit.group("w", 2), uid="22222222-2222-2222-2222-222222222222")
    assert {name for name, _ in created(decide(cluster))}.isdisjoint(name for name, _ in created(decide(other)))


def test_a_name_rests_while_it_is_tombstoned_or_listed_for_deletion() -> None:
    cluster = kit.raycluster("c", kit.group("w", 1))
    first, second = (name for name, _ in created(decide(kit.raycluster("c", kit.group("w", 2)))))
    assert [name for name, _ in created(decide(cluster, gone=[("Pod", first)]))] == [second]
    listed = kit.raycluster("c", kit.group("w", 1, scaleStrategy={"workersToDelete": [first]}))
    assert [name for name, _ in created(decide(listed))] == [second]


def test_long_names_keep_their_first_fifty_characters() -> None:
    cluster = kit.raycluster("c" * 53, kit.group("W", 1))
    ((name, _),) = created(decide(cluster))
    assert name.startswith("c" * 50 + "-worker-") and len(name) <= 63


def test_free_indexes_are_used_again_lowest_first() -> None:
    cluster = kit.raycluster("c", kit.group("w", 3))
    workers = [kit.worker(cluster, "c-w-worker-b", "w", 1, **kit.READY)]
    assert [index for _, index in created(decide(cluster, *running(cluster, *workers)))] == ["0", "2"]


def test_at_most_a_hundred_pods_of_a_group_in_one_decision() -> None:
    cluster = kit.raycluster("c", kit.group("w", 250, maxReplicas=300))
    assert len(created(decide(cluster, *running(cluster)))) == 100


def test_what_goes_first_is_what_is_least_use() -> None:
    cluster = kit.raycluster("c", kit.group("w", 1))
    old, new = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
    workers = [
        _aged(kit.worker(cluster, "w-ready-old", "w", 0, **kit.READY), old),
        _aged(kit.worker(cluster, "w-ready-new", "w", 1, **kit.READY), new),
        kit.worker(cluster, "w-pending", "w", 2),
        kit.worker(cluster, "w-unready", "w", 3, phase="Running", conditions=[{"type": "Ready", "status": "False"}]),
    ]
    gone: list[str] = []
    for wanted in (3, 2, 1):
        cluster["spec"]["workerGroupSpecs"][0]["replicas"] = wanted
        gone.append((set(deleted(decide(cluster, *running(cluster, *workers)))) - set(gone)).pop())
    assert gone == ["w-pending", "w-unready", "w-ready-new"]


def test_a_pod_on_its_way_out_is_the_first_of_the_surplus() -> None:
    cluster = kit.raycluster("c", kit.group("w", 1))
    workers = kit.terminating(kit.worker(cluster, "a", "w", 0)), kit.worker(cluster, "b", "w", 1, **kit.READY)
    decision = decide(cluster, *running(cluster, *workers))
    assert not deleted(decision) and not created(decision)


def test_workers_to_delete_takes_exactly_the_named_pods() -> None:
    cluster = kit.raycluster("c", kit.group("w", 1, scaleStrategy={"workersToDelete": ["b", "unknown"]}))
    workers = [kit.worker(cluster, name, "w", i, **kit.READY) for i, name in enumerate(("a", "b"))]
    decision = decide(cluster, *running(cluster, *workers))
    assert deleted(decision) == ["b"] and not created(decision)


def test_workers_to_delete_means_only_pods_of_its_own_group() -> None:
    named = kit.group("w", 0, scaleStrategy={"workersToDelete": ["other", "c-head-aaaaa"]})
    cluster = kit.raycluster("c", named, kit.group("v", 1))
    decision = decide(cluster, *running(cluster, kit.worker(cluster, "other", "v", 0, **kit.READY)))
    assert not deleted(decision)


FAILURES: dict[str, tuple[dict[str, Any], str, bool]] = {
    "a failed pod is replaced": ({"phase": "Failed"}, "Always", True),
    "a pod that ended well is replaced too": ({"phase": "Succeeded"}, "OnFailure", True),
    "an ended Ray container that nobody restarts": (
        {"phase": "Running", "containerStatuses": [{"name": "ray", "state": {"terminated": {"exitCode": 1}}}]},
        "Never",
        True,
    ),
    "an ended Ray container that the kubelet restarts": (
        {"phase": "Running", "containerStatuses": [{"name": "ray", "state": {"terminated": {"exitCode": 1}}}]},
        "Always",
        False,
    ),
    "another container that ended": (
        {"phase": "Running", "containerStatuses": [{"name": "log", "state": {"terminated": {"exitCode": 1}}}]},
        "Never",
        False,
    ),
    "a pod that waits": ({"phase": "Pending"}, "Never", False),
    "a pod of unknown phase": ({"phase": "Unknown"}, "Never", False),
}


@pytest.mark.parametrize(("status", "policy", "goes"), FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("kind", ["head", "worker"])
def test_which_pods_are_replaced(kind: str, status: dict[str, Any], policy: str, goes: bool) -> None:
    cluster = kit.raycluster("c", kit.group("w", 1))
    head, worker = kit.head(cluster, "h", **kit.READY), kit.worker(cluster, "w", "w", 0, **kit.READY)
    pod = head if kind == "head" else worker
    pod["spec"]["restartPolicy"], pod["status"] = policy, status
    decision = decide(cluster, kit.head_service(cluster), head, worker)
    assert deleted(decision) == ([pod["metadata"]["name"]] if goes else [])
    assert not created(decision) and not created(decision, "head")


def test_a_failing_group_does_not_stop_the_others() -> None:
    cluster = kit.raycluster("c", kit.group("a", 1), kit.group("b", 1))
    decision = decide(cluster, *running(cluster, kit.worker(cluster, "bad", "a", 0, **FAILED)))
    assert deleted(decision) == ["bad"] and len(created(decision)) == 1


def test_a_head_on_its_way_out_is_not_replaced_yet() -> None:
    cluster = kit.raycluster("c")
    decision = decide(cluster, kit.head_service(cluster), kit.terminating(kit.head(cluster, "h", **kit.READY)))
    assert not decision.intents


def test_of_two_heads_the_usable_one_stays() -> None:
    cluster = kit.raycluster("c")
    heads = kit.head(cluster, "a"), kit.head(cluster, "b", **kit.READY)
    assert deleted(decide(cluster, kit.head_service(cluster), *heads)) == ["a"]


def test_a_provisioned_cluster_may_ask_for_no_second_head() -> None:
    provisioned = {"conditions": [{"type": "RayClusterProvisioned", "status": "True", "reason": "x"}]}
    asks = {"annotations": {"ray.io/disable-provisioned-head-restart": "true"}}
    cluster = kit.raycluster("c", kit.group("w", 1), status=provisioned, **asks)
    assert not decide(cluster, kit.head_service(cluster)).intents
    fresh = kit.raycluster("c", kit.group("w", 1), **asks)
    assert created(decide(fresh, kit.head_service(fresh)), "head")


def test_pods_of_another_cluster_of_that_name_do_not_count() -> None:
    old = kit.raycluster("c", uid="33333333-3333-3333-3333-333333333333")
    new = kit.raycluster("c", kit.group("w", 1))
    strangers = kit.head(old, "c-head-old"), kit.worker(old, "c-w-worker-old", "w", **kit.READY)
    decision = decide(new, kit.head_service(new), *strangers)
    assert len(created(decision)) == 1 and len(created(decision, "head")) == 1


def test_a_refused_pod_is_in_the_status_and_explained() -> None:
    cluster = kit.raycluster("c", kit.group("w", 1))
    wish = next(intent for intent in decide(cluster, *running(cluster)).intents if isinstance(intent, CreatePods))
    refusal = Refusal(
        intent=fingerprint(wish),
        ref=kit_ref("c-w-worker-xxxxx"),
        verb="create",
        code=403,
        reason="Forbidden",
        message='pods "c-w-worker-xxxxx" is forbidden: exceeded quota: small',
        at=NOW,
        retry_at=Instant(NOW + 30),
    )
    result = Result(root_uid=kit.CLUSTER_UID, refusals=(refusal,))
    decision = decide(cluster, *running(cluster), result=result)
    assert decision.status is not None and not decision.progress
    failure = decision.status["conditions"][0]
    assert (failure["type"], failure["status"], failure["reason"]) == (
        "ReplicaFailure",
        "True",
        "FailedCreateWorkerPod",
    )
    assert "exceeded quota" in failure["message"]
    (why,) = (why for why in decision.because if why.reason == Reason.QUOTA_REFUSED)
    assert "exceeded quota" in why.text and "ResourceQuota" in why.next_step
    smaller = kit.raycluster("c", kit.group("w", 0))
    after = decide(smaller, *running(smaller), result=result).status
    assert after is not None and after["conditions"][0]["type"] == "HeadPodReady"


def kit_ref(name: str) -> Any:
    from raybus.api.decision import Ref

    return Ref("Pod", kit.NAMESPACE, name)


def _aged(pod: kit.Json, created_at: str) -> kit.Json:
    return {**pod, "metadata": {**pod["metadata"], "creationTimestamp": created_at}}
