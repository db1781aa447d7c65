"""The status: what it says, when it is worth a write, and when that write may wait."""

from typing import Any

import pytest

from raybus.api.decision import Decision
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs())
NOW, LATER = Instant(1_800_000_000.0), Instant(1_800_000_060.0)


def decide(cluster: kit.Json, *children: kit.Json, now: Instant = NOW) -> Decision:
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, cluster, *children))
    assert value is not None
    return CONTROLLER.decide(value, now, CONTROLLER.knobs)


def status_of(cluster: kit.Json, *children: kit.Json, now: Instant = NOW) -> kit.Json:
    status = decide(cluster, *children, now=now).status
    assert status is not None
    return status


def condition(status: kit.Json, kind: str) -> tuple[str, str, str]:
    found = next(entry for entry in status["conditions"] if entry["type"] == kind)
    return found["status"], found["reason"], found["message"]


def ready_cluster() -> tuple[kit.Json, tuple[kit.Json, ...]]:
    """A cluster that is ready and says so, and its children."""
    cluster = kit.raycluster("c", kit.group("w", 1))
    children = (
        kit.head_service(cluster),
        kit.head(cluster, "h", **kit.READY),
        kit.worker(cluster, "w", "w", **kit.READY),
    )
    return {**cluster, "status": status_of(cluster, *children)}, children


def test_ready_when_head_and_all_wanted_workers_are() -> None:
    cluster, _ = ready_cluster()
    status = cluster["status"]
    assert status["state"] == "ready" and status["stateTransitionTimes"] == {"ready": "2027-01-15T08:00:00Z"}
    assert (status["desiredWorkerReplicas"], status["readyWorkerReplicas"]) == (1, 1)
    assert condition(status, "RayClusterProvisioned")[:2] == ("True", "AllPodRunningAndReadyFirstTime")
    assert status["head"] == {
        "podName": "h",
        "podIP": "10.1.0.7",
        "serviceName": "c-head-svc",
        "serviceIP": "10.1.0.7",
    }
    assert status["endpoints"] == {"dashboard": "8265"}


def test_becoming_ready_is_written_at_once() -> None:
    cluster = kit.raycluster("c")
    decision = decide(cluster, kit.head_service(cluster), kit.head(cluster, "h", **kit.READY))
    assert not decision.progress and decision.urgent


def test_nothing_is_written_when_only_time_has_passed() -> None:
    cluster, children = ready_cluster()
    decision = decide(cluster, *children, now=LATER)
    assert decision.status == cluster["status"] and not decision.progress and not decision.intents


def test_ready_is_sticky_and_the_conditions_tell_the_truth() -> None:
    cluster, (service, _, worker) = ready_cluster()
    lost = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]}
    decision = decide(cluster, service, kit.head(cluster, "h", **lost), worker, now=LATER)
    assert decision.status is not None and decision.status["state"] == "ready"
    assert condition(decision.status, "HeadPodReady")[:2] == ("False", "ContainersNotReady")
    assert condition(decision.status, "RayClusterProvisioned")[0] == "True"
    assert not decision.progress


def test_a_pod_too_many_or_too_few_is_not_ready() -> None:
    cluster = kit.raycluster("c", kit.group("w", 1))
    status = status_of(
        cluster, kit.head_service(cluster), kit.head(cluster, "h", **kit.READY), _stray(cluster), _stray(cluster, "y")
    )
    assert "state" not in status


def test_times_of_conditions_move_with_their_status_only() -> None:
    cluster, (service, head, _) = ready_cluster()
    status = status_of(cluster, service, head, kit.worker(cluster, "w", "w", phase="Running"), now=LATER)
    assert {entry["lastTransitionTime"] for entry in status["conditions"]} == {"2027-01-15T08:00:00Z"}
    assert status["lastUpdateTime"] == "2027-01-15T08:01:00Z"


PROGRESS: dict[str, tuple[dict[str, Any], bool]] = {
    "a head that is scheduled": ({"podIP": "10.1.0.9"}, True),
    "a head that starts": (
        {"conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}]},
        True,
    ),
    "a head whose image cannot be pulled": (
        {
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady"}],
            "containerStatuses": [{"name": "ray", "state": {"waiting": {"reason": "ErrImagePull"}}}],
        },
        False,
    ),
}


@pytest.mark.parametrize(("head", "waits"), PROGRESS.values(), ids=PROGRESS)
def test_what_may_wait_for_quiet(head: dict[str, Any], waits: bool) -> None:
    cluster = kit.raycluster("c")
    children = kit.head_service(cluster), kit.head(cluster, "h")
    cluster["status"] = status_of(cluster, *children)
    decision = decide(cluster, children[0], kit.head(cluster, "h", **head))
    assert decision.status != cluster["status"] and decision.progress is waits


HEADS: dict[str, tuple[dict[str, Any], tuple[str, str, str]]] = {
    "no condition yet": ({}, ("False", "Unknown", "")),
    "ready without a reason": (kit.READY, ("True", "HeadPodRunningAndReady", "")),
    "not ready without a reason": ({"conditions": [{"type": "Ready", "status": "False"}]}, ("False", "Unknown", "")),
    "waiting containers give the cause": (
        {
            "conditions": [{"type": "Ready", "status": "False", "reason": "ContainersNotReady", "message": "m"}],
            "containerStatuses": [
                {"name": "fine", "state": {"running": {}}},
                {"name": "mute", "state": {"waiting": {"reason": ""}}},
                {"name": "ray", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such tag"}}},
            ],
        },
        ("False", "ImagePullBackOff", "m; ray: no such tag"),
    ),
}


@pytest.mark.parametrize(("pod", "expected"), HEADS.values(), ids=HEADS)
def test_head_pod_ready(pod: dict[str, Any], expected: tuple[str, str, str]) -> None:
    cluster = kit.raycluster("c")
    assert (
        condition(status_of(cluster, kit.head_service(cluster), kit.head(cluster, "h", **pod)), "HeadPodReady")
        == expected
    )


def test_desired_resources_take_requests_then_limits_and_raw_replicas() -> None:
    amounts = {"limits": {"cpu": "2", "memory": "4Gi", "nvidia.com/gpu": "1"}, "requests": {"cpu": "500m"}}
    group = kit.group("w", 7, maxReplicas=2, template=kit.template(resources=amounts))
    cluster = kit.raycluster("c", group)
    workers = [kit.worker(cluster, f"w{i}", "w", i, **kit.READY) for i in range(2)]
    status = status_of(cluster, kit.head_service(cluster), kit.head(cluster, "h", **kit.READY), *workers)
    wanted = ("desiredCPU", "desiredMemory", "desiredGPU", "desiredTPU", "desiredWorkerReplicas")
    assert [status[key] for key in wanted] == ["3500m", "28Gi", "7", "0", 2]


def test_without_the_conditions_gate_there_are_none() -> None:
    bare = controller(ClusterKnobs(status_conditions=False))
    cluster = kit.raycluster("c")
    value = bare.gather(kit.view_of(bare, cluster, kit.head_service(cluster), kit.head(cluster, "h", **kit.READY)))
    assert value is not None
    status = bare.decide(value, NOW, bare.knobs).status
    assert status is not None and status["state"] == "ready" and "conditions" not in status


def test_a_head_service_with_an_address_gives_it() -> None:
    cluster = kit.raycluster("c")
    service = kit.head_service(cluster, cluster_ip="10.96.0.5")
    assert status_of(cluster, service, kit.head(cluster, "h", **kit.READY))["head"]["serviceIP"] == "10.96.0.5"


def _stray(cluster: kit.Json, name: str = "x") -> kit.Json:
    """A ready worker of a group that is no longer in the spec."""
    return kit.worker(cluster, name, "removed", **kit.READY)
