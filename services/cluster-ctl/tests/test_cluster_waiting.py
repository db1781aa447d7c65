"""What `raybus explain` says of pods that are not ready: object, cause, next step."""

from typing import Any

import pytest

from raybus.api.decision import Why
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.waiting import MAX_SENTENCES
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs())


def because(cluster: kit.Json, *children: kit.Json) -> tuple[Why, ...]:
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, cluster, kit.head_service(cluster), *children))
    assert value is not None
    return CONTROLLER.decide(value, Instant(0.0), CONTROLLER.knobs).because


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    return {
        "containerStatuses": [{"name": "ray", "state": {"waiting": {"reason": reason, "message": message}}, **more}]
    }


CAUSES: dict[str, tuple[dict[str, Any], Reason, str]] = {
    "an image that cannot be pulled": (
        waiting("ImagePullBackOff", 'Back-off pulling image "x"'),
        Reason.IMAGE_PULL_FAILED,
        'its image cannot be pulled (ImagePullBackOff): Back-off pulling image "x"',
    ),
    "an image name that is none": (waiting("InvalidImageName"), Reason.IMAGE_PULL_FAILED, "(InvalidImageName)"),
    "a missing Secret": (
        waiting("CreateContainerConfigError", 'secret "s" not found'),
        Reason.CONTAINER_FAILING,
        'CreateContainerConfigError: secret "s" not found',
    ),
    "a crash loop": (
        waiting("CrashLoopBackOff", restartCount=4, lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}),
        Reason.CONTAINER_FAILING,
        "ended with exit code 137 (OOMKilled) and was started 5 times",
    ),
    "no room on any node": (
        {"conditions": [{"type": "PodScheduled", "status": "False", "message": "0/3 nodes: Insufficient cpu."}]},
        Reason.UNSCHEDULABLE,
        "No node has room for the head pod h: 0/3 nodes: Insufficient cpu.",
    ),
    "a probe that fails": (
        {"phase": "Running", "conditions": [{"type": "Ready", "status": "False", "message": "unready: [ray]"}]},
        Reason.HEAD_NOT_READY,
        "The head pod h is Running and not ready yet: unready: [ray].",
    ),
    "an init container that fails": (
        {"initContainerStatuses": [{"name": "prep", "state": {"waiting": {"reason": "ErrImagePull"}}}]},
        Reason.IMAGE_PULL_FAILED,
        "container prep",
    ),
}


@pytest.mark.parametrize(("status", "reason", "text"), CAUSES.values(), ids=CAUSES)
def test_why_the_head_is_not_ready(status: dict[str, Any], reason: Reason, text: str) -> None:
    cluster = kit.raycluster("c")
    (why,) = because(cluster, kit.head(cluster, "h", **status))
    assert why.reason == reason and text in why.text
    assert why.about is not None and (why.about.kind, why.about.name) == ("Pod", "h") and why.next_step


def test_starting_workers_are_one_sentence_a_group() -> None:
    cluster = kit.raycluster("c", kit.group("a", 2), kit.group("b", 1))
    pods = kit.worker(cluster, "a0", "a", 0), kit.worker(cluster, "a1", "a", 1), kit.worker(cluster, "b0", "b", 0)
    found = because(cluster, kit.head(cluster, "h", **kit.READY), *pods)
    assert [why.text for why in found] == [
        "Workers of group a are not ready yet: a0 and others.",
        "Workers of group b are not ready yet: b0.",
    ]


def test_many_broken_pods_are_a_few_sentences() -> None:
    cluster = kit.raycluster("c", kit.group("a", 10))
    pods = [kit.worker(cluster, f"a{i}", "a", i, **waiting("ErrImagePull")) for i in range(10)]
    assert len(because(cluster, kit.head(cluster, "h", **kit.READY), *pods)) == MAX_SENTENCES


def test_a_ready_cluster_says_so() -> None:
    cluster = kit.raycluster("c")
    (why,) = because(cluster, kit.head(cluster, "h", **kit.READY))
    assert why.reason == Reason.CLUSTER_READY
