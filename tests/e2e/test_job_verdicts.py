"""How RayJobs end that do not simply succeed with Raybus's own submitter."""

import json
from collections.abc import Callable

from ray_world import COUNTING, READY, SOON, RayWorld

FAILING = """
import ray


@ray.remote
def divide(number):
    return number // 0


ray.init()
print("about to divide", flush=True)
ray.get(divide.remote(1))
"""


def test_failing_program_is_tried_again_and_then_failed_with_its_own_words(
    world: RayWorld, raybus: Callable[..., str]
) -> None:
    world.run("bad", FAILING, backoffLimit=1, shutdownAfterJobFinishes=True)
    world.phase("bad", "Running", READY)
    first = world.status("rayjob", "bad")
    world.wait("the second attempt", lambda: world.status("rayjob", "bad").get("failed") == 1 or None, READY)
    status = world.phase("bad", "Failed", READY + SOON)
    assert (status["jobStatus"], status["reason"], status["failed"]) == ("FAILED", "AppFailed", 2)
    assert status.get("succeeded", 0) == 0
    assert "ZeroDivisionError" in status["message"]
    assert status["rayClusterName"] != first["rayClusterName"] and status["jobId"] != first["jobId"]
    (pod,) = world.submitters("bad")
    log = world.log(pod["metadata"]["name"])
    assert "about to divide" in log and "ZeroDivisionError" in log
    assert log.splitlines()[-1].startswith(f"FAIL -- Job '{status['jobId']}' failed: ")
    # The submitter did its work: Kubernetes must not start it again for the program's failure.
    assert (world.status("job", "bad")["succeeded"], pod["status"]["phase"]) == (1, "Succeeded")
    world.wait("both clusters go", lambda: not world.list("rayclusters") or None, 60)
    assert "ZeroDivisionError" in raybus("explain", "rayjob/bad", "-n", world.namespace)


def test_head_deleted_under_a_job_of_a_submitter_fails_the_job(world: RayWorld, raybus: Callable[..., str]) -> None:
    world.run("headless", COUNTING)
    world.phase("headless", "Running", READY)
    world.printed(world.submitter("headless"), "line 20\n")
    world.wait("RUNNING", lambda: world.status("rayjob", "headless").get("jobStatus") == "RUNNING" or None)
    head = world.head("headless")
    world.kubectl("delete", "pod", head["metadata"]["name"], "-n", world.namespace, "--grace-period=1", "--wait=false")
    status = world.phase("headless", "Failed")
    assert status["reason"] == "AppFailed" and head["metadata"]["name"] in status["message"], json.dumps(status)
    new = world.head("headless")
    assert new["metadata"]["uid"] != head["metadata"]["uid"]
    assert head["metadata"]["name"] in raybus("explain", "rayjob/headless", "-n", world.namespace)


def test_http_mode_submits_by_itself_and_again_to_a_new_head(world: RayWorld) -> None:
    world.run("http", COUNTING, submissionMode="HTTPMode")
    world.phase("http", "Running", READY)
    world.wait("RUNNING", lambda: world.status("rayjob", "http").get("jobStatus") == "RUNNING" or None)
    head = world.head("http")
    world.kubectl("delete", "pod", head["metadata"]["name"], "-n", world.namespace, "--grace-period=1", "--wait=false")

    def runs_again() -> bool | None:
        status = world.status("rayjob", "http")
        on = status.get("rayClusterStatus", {}).get("head", {}).get("podName")
        return (status.get("jobStatus") == "RUNNING" and on not in ("", head["metadata"]["name"])) or None

    world.wait("the job runs on the new head", runs_again, READY)
    world.finish("http")
    status = world.phase("http", "Complete")
    assert status["jobStatus"] == "SUCCEEDED" and status["succeeded"] == 1 and status.get("failed", 0) == 0
    (known,) = world.submissions("http")
    assert (known["submission_id"], known["status"]) == (status["jobId"], "SUCCEEDED")
    assert world.list("jobs") == []
