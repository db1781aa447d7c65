"""`raybus explain` on a real API server: for each cause the object, the cause and the next step."""

import json
from collections.abc import Callable

import pytest
from bare_world import BareWorld, Dashboard, ray_cluster, ray_job

Raybus = Callable[..., str]


def explained(world: BareWorld, raybus: Raybus, target: str, *parts: str) -> str:
    """The answer once it holds all `parts`; fails with the last answer."""
    answers = [""]

    def ask() -> str | None:
        answers[0] = raybus("explain", target, "-n", world.namespace)
        return answers[0] if all(part in answers[0] for part in parts) else None

    try:
        return world.wait(f"explain {target} says {parts}", ask)
    except AssertionError as error:
        raise AssertionError(f"{error}\nlast answer:\n{answers[0]}") from None


def test_quota_refusal_names_the_pod_the_quota_and_what_to_do(world: BareWorld, raybus: Raybus) -> None:
    world.apply(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "small"}, "spec": {"hard": {"pods": "1"}}}
    )
    world.set_status("resourcequota", "small", {"hard": {"pods": "1"}, "used": {"pods": "0"}})
    world.apply(ray_cluster("big", workers=2))
    answer = explained(world, raybus, "raycluster/big", "QuotaRefused", "exceeded quota: small", "next:")
    assert "big-" in answer


def test_head_that_is_not_ready_is_named_under_the_job_that_waits_for_it(world: BareWorld, raybus: Raybus) -> None:
    world.apply(ray_job("waits"))
    explained(world, raybus, "rayjob/waits", "ClusterNotReady", "raycluster/waits-", "HeadNotReady", "next:")


def test_image_that_cannot_be_pulled_is_named_with_the_kubelets_words(world: BareWorld, raybus: Raybus) -> None:
    world.apply(ray_job("noimage"))
    (pod,) = world.wait("the head", lambda: world.list("pods") or None)
    waiting = {"reason": "ImagePullBackOff", "message": 'Back-off pulling image "example.test/none:1"'}
    container = {"name": "ray", "image": "example.test/none:1", "imageID": "", "ready": False, "restartCount": 0}
    status = {"phase": "Pending", "containerStatuses": [container | {"state": {"waiting": waiting}}]}
    world.set_status("pod", pod["metadata"]["name"], status)
    explained(
        world, raybus, "rayjob/noimage", "ImagePullFailed", pod["metadata"]["name"], "example.test/none:1", "next:"
    )


def test_pod_that_fits_nowhere_is_named_with_the_schedulers_words(world: BareWorld, raybus: Raybus) -> None:
    world.apply(ray_cluster("huge", workers=0))
    (pod,) = world.wait("the head", lambda: world.list("pods") or None)
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes: no cpu"}
    world.set_status("pod", pod["metadata"]["name"], {"phase": "Pending", "conditions": [condition]})
    explained(world, raybus, "raycluster/huge", "Unschedulable", pod["metadata"]["name"], "0/1 nodes: no cpu", "next:")


def test_submitter_that_failed_is_named_with_the_jobs_words(
    world: BareWorld, raybus: Raybus, dashboard_address: str
) -> None:
    with Dashboard().serve(dashboard_address) as port:
        running_job(world, "nosub", dashboard_address, port)
        failure = {"type": "Failed", "status": "True", "reason": "BackoffLimitExceeded", "message": "limit reached"}
        target = {
            "type": "FailureTarget",
            "status": "True",
            "reason": "BackoffLimitExceeded",
            "message": "limit reached",
        }
        now = {"lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": "2026-01-01T00:00:00Z"}
        status = {"startTime": "2026-01-01T00:00:00Z", "failed": 3, "conditions": [target | now, failure | now]}
        world.set_status("job", "nosub", status)
        explained(
            *(world, raybus, "rayjob/nosub", "SubmissionFailed", "RayJob nosub", "BackoffLimitExceeded", "next:"),
            f"kubectl logs job/nosub -n {world.namespace}",
        )


def test_dashboard_that_does_not_answer_is_named_with_its_address(
    world: BareWorld, raybus: Raybus, dashboard_address: str
) -> None:
    with Dashboard().serve(dashboard_address) as port:
        running_job(world, "mute", dashboard_address, port, submissionMode="HTTPMode")
        explained(world, raybus, "rayjob/mute", "JobRunning", "is RUNNING")
    gone = ("RayCluster mute-", "mute-", "head-svc", "connection refused", "next:", "kubectl logs mute-")
    explained(world, raybus, "rayjob/mute", "DashboardUnreachable", *gone)


def running_job(world: BareWorld, name: str, address: str, port: int, **spec: object) -> None:
    """A RayJob whose cluster is ready and whose dashboard answers at `address:port`, in phase Running."""
    world.apply(ray_job(name, **spec))
    world.pods_ready(1, address)
    cluster = world.wait("the cluster's name", lambda: world.status("rayjob", name).get("rayClusterName"))
    world.wait("the head service", lambda: world.get("service", f"{cluster}-head-svc"))
    world.endpoints(f"{cluster}-head-svc", address, port)
    world.wait("Running", lambda: world.status("rayjob", name).get("jobDeploymentStatus") == "Running" or None)


def test_explain_of_something_unknown_says_so(world: BareWorld, raybus: Raybus) -> None:
    answer = raybus("explain", "rayjob/nobody", "-n", world.namespace)
    assert "nothing is recorded" in answer and world.namespace in answer


@pytest.mark.parametrize("target", ["nobody", "pod/x", "rayjob/"], ids=["no kind", "no kind of ours", "no name"])
def test_explain_of_no_object_says_how_to_name_one(raybus: Raybus, target: str) -> None:
    assert "write kind/name" in raybus("explain", target)


def test_timeline_tells_phases_and_reasons_also_after_the_object_is_gone(world: BareWorld, raybus: Raybus) -> None:
    secret = "do-not-print-me"
    job = ray_job("short", entrypoint=f"echo {secret}")
    container = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    job["spec"]["rayClusterSpec"] = json.loads(json.dumps(job["spec"]["rayClusterSpec"]))
    container = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]
    container["env"] = [{"name": "TOKEN", "value": secret}]
    world.apply(job)
    world.pods_ready(1)
    world.kubectl("delete", "rayjob", "short", "-n", world.namespace, "--wait=false")
    world.wait("the job is gone", lambda: world.get("rayjob", "short") is None or None)
    answer = raybus("timeline", "rayjob/short", "-n", world.namespace)
    assert "New -> Initializing" in answer and "create RayCluster short-" in answer
    assert secret not in answer
