"""`raybus explain`: object, cause and next step for everything that a RayJob may wait for."""

from collections.abc import Callable

import pytest
from jobworld import CLUSTER, HEAD, JobWorld, condition, initializing, refusal, rfc, running, spec

from raybus.api.decision import Ref, Why
from raybus.api.messages import fingerprint


def why(world: JobWorld, seconds: float = 5.0) -> dict[str, Why]:
    return {why.reason.name: why for why in world.decide(seconds).because}


def pod(world: JobWorld, name: str, **status: object) -> JobWorld:
    world.objects["pod", name]["status"] = {"phase": "Pending", **status}
    return world


def waiting(reason: str, message: str) -> dict[str, object]:
    return {"name": "c", "image": "example.test/none:1", "state": {"waiting": {"reason": reason, "message": message}}}


UNSCHEDULABLE = condition("PodScheduled", "False", "Unschedulable", "0/1 nodes are available")
PULL = waiting("ImagePullBackOff", "no such image")

# (sentence, world, reason, object, words of the text, words of the next step)
CASES: list[tuple[str, Callable[[], JobWorld], str, str, str, str]] = [
    (
        "the cluster is not ready, and says why",
        lambda: with_cluster_reason(initializing()),
        "CLUSTER_NOT_READY",
        f"RayCluster n/{CLUSTER}",
        "is not ready: the reason of the cluster",
        f"raybus explain raycluster/{CLUSTER} -n n",
    ),
    (
        "the head pod is not ready",
        lambda: pod(initializing(), HEAD),
        "HEAD_NOT_READY",
        f"Pod n/{HEAD}",
        "is not ready (phase Pending)",
        "kubectl describe pod",
    ),
    (
        "the head's image cannot be pulled",
        lambda: pod(initializing(), HEAD, containerStatuses=[PULL]),
        "IMAGE_PULL_FAILED",
        f"Pod n/{HEAD}",
        "image example.test/none:1 of container c",
        "imagePullSecret",
    ),
    (
        "the head cannot be scheduled",
        lambda: pod(initializing(), HEAD, conditions=[UNSCHEDULABLE]),
        "UNSCHEDULABLE",
        f"Pod n/{HEAD}",
        "0/1 nodes are available",
        "add nodes",
    ),
    (
        "the submitter's image cannot be pulled",
        lambda: pod(running(), "demo-pod", containerStatuses=[PULL]),
        "IMAGE_PULL_FAILED",
        "Pod n/demo-pod",
        "no such image",
        "correct the image's name",
    ),
    (
        "the submitter cannot be scheduled",
        lambda: pod(running(), "demo-pod", conditions=[UNSCHEDULABLE]),
        "UNSCHEDULABLE",
        "Pod n/demo-pod",
        "cannot be scheduled",
        "ask for less",
    ),
    (
        "a submitter pod has failed",
        lambda: running().submitter(failed=1),
        "SUBMITTER_FAILED",
        "Job n/demo",
        "1 pods of submitter Job demo have failed",
        "kubectl logs job/demo -n n",
    ),
    (
        "the submitter has failed for good",
        lambda: running().submitter("Failed").fact("probe", "missing", 2),
        "SUBMISSION_FAILED",
        "Job n/demo",
        "Because: of the test",
        "kubectl logs job/demo",
    ),
    (
        "the submitter has failed, and that is stored",
        lambda: failed("SubmissionFailed", "BackoffLimitExceeded: limit reached"),
        "SUBMISSION_FAILED",
        "RayJob n/demo",
        "BackoffLimitExceeded",
        "kubectl logs job/demo -n n",
    ),
    (
        "another operator's failure",
        lambda: failed("WhoKnows", "said KubeRay"),
        "JOB_FAILED",
        "RayJob n/demo",
        "said KubeRay",
        "",
    ),
    (
        "the dashboard does not answer",
        lambda: running("HTTPMode").fact("probe", "unreachable", 2),
        "DASHBOARD_UNREACHABLE",
        f"RayCluster n/{CLUSTER}",
        f"does not answer since {rfc(5)}: connection refused",
        f"kubectl logs {HEAD}",
    ),
    (
        "the log is still being delivered",
        lambda: running().ray_says("SUCCEEDED"),
        "WAITING_FOR_SUBMITTER",
        "Job n/demo",
        "Ray reports SUCCEEDED",
        "",
    ),
    (
        "the spec is refused",
        lambda: JobWorld(spec=spec(backoffLimit=-1)),
        "VALIDATION_FAILED",
        "RayJob n/demo",
        "backoffLimit must be a positive integer",
        "kubectl edit rayjob demo -n n",
    ),
]


def failed(reason: str, message: str) -> JobWorld:
    world = running()
    world.status.update(jobDeploymentStatus="Failed", reason=reason, message=message, endTime=rfc(1))
    return world


def with_cluster_reason(world: JobWorld) -> JobWorld:
    world.objects["raycluster", CLUSTER]["status"]["reason"] = "the reason of the cluster"
    return world


@pytest.mark.parametrize(
    ("make", "reason", "about", "text", "step"), [pytest.param(*case[1:], id=case[0]) for case in CASES]
)
def test_explain(make: Callable[[], JobWorld], reason: str, about: str, text: str, step: str) -> None:
    found = why(make())[reason]
    assert str(found.about) == about
    assert text in found.text
    assert step in found.next_step


@pytest.mark.parametrize(
    ("message", "code", "status_reason", "reason", "step"),
    [
        pytest.param("exceeded quota: q", 403, "Forbidden", "QUOTA_REFUSED", "kubectl describe quota -n n", id="quota"),
        pytest.param("cannot create", 403, "Forbidden", "FORBIDDEN", "grant the right", id="forbidden"),
        pytest.param("there is one", 409, "name-taken", "NAME_TAKEN", "delete or rename", id="name taken"),
        pytest.param("invalid", 422, "Invalid", "REFUSED_BY_API_SERVER", "correct what", id="invalid"),
    ],
)
def test_refusals_are_explained(message: str, code: int, status_reason: str, reason: str, step: str) -> None:
    world = initializing("ready")
    (create,) = world.decide(5).intents
    world.refusals = (refusal(fingerprint(create), Ref("Job", "n", "demo"), message, code, status_reason),)
    found = why(world)[reason]
    assert f"refused to create Job n/demo: {message}" in found.text and step in found.next_step


def test_a_refusal_of_what_is_not_wanted_any_more_is_not_shown() -> None:
    world = running()
    world.refusals = (refusal("other", Ref("Job", "n", "demo"), "exceeded quota"),)
    assert "QUOTA_REFUSED" not in why(world)


def test_a_running_job_says_so() -> None:
    assert why(running().ray_says("RUNNING"))["JOB_RUNNING"].text == "job demo-jjjjj is RUNNING"
