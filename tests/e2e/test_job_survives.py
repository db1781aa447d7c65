"""A running RayJob survives what happens around it: it ends well, was submitted once, and its log is whole."""

from ray_world import COUNTING, READY, RayWorld, check_whole, cut_off

from raybus.dev.stack import Stack

DASHBOARD = 8265


def check_one_submission(world: RayWorld, job: str, job_id: str) -> None:
    assert [known["submission_id"] for known in world.submissions(job)] == [job_id]
    assert len(world.list("rayclusters")) == 1
    assert [found["metadata"]["name"] for found in world.list("jobs")] == [job]


def test_job_outlives_its_log_connection(world: RayWorld) -> None:
    world.run("long", COUNTING, shutdownAfterJobFinishes=True)
    world.phase("long", "Running", READY)
    pod = world.submitter("long")
    world.printed(pod, "line 20\n")
    with cut_off(world.head("long"), DASHBOARD):
        world.printed(pod, "WARN -- lost the job's log")
    world.more_lines(pod)
    world.finish("long")
    status = world.phase("long", "Complete")
    assert status["jobStatus"] == "SUCCEEDED" and status["succeeded"] == 1 and status.get("failed", 0) == 0
    log = world.log(pod)
    check_whole(log)
    assert log.count("submitted successfully") == 1
    assert [found["metadata"]["name"] for found in world.submitters("long")] == [pod]
    # shutdownAfterJobFinishes: the cluster goes, the submitter's Job and its log stay.
    world.wait("the cluster goes", lambda: not world.list("rayclusters") or None, 60)
    assert world.get("job", "long") is not None


def test_job_outlives_its_submitter_and_the_services(world: RayWorld, stack: Stack) -> None:
    world.run("hardy", COUNTING)
    head = world.head("hardy")
    restart(stack, kill(stack))
    world.phase("hardy", "Running", READY)
    first = world.submitter("hardy")
    world.printed(first, "line 20\n")
    # The submitter goes while nobody of Raybus is there; Kubernetes' Job controller replaces it.
    dead = kill(stack)
    world.kubectl("delete", "pod", first, "-n", world.namespace, "--grace-period=1")
    second = world.submitter("hardy", besides=first)
    assert "has already been submitted, tailing logs" in world.printed(second, "line 40\n")
    restart(stack, dead)
    # The job ends while nobody of Raybus is there.
    dead = kill(stack)
    world.finish("hardy")
    world.printed(second, "SUCC -- Job ")
    restart(stack, dead)
    status = world.phase("hardy", "Complete")
    assert status["jobStatus"] == "SUCCEEDED" and status["succeeded"] == 1 and status.get("failed", 0) == 0
    check_whole(world.log(second))
    check_one_submission(world, "hardy", status["jobId"])
    assert world.head("hardy")["metadata"]["uid"] == head["metadata"]["uid"]


def kill(stack: Stack) -> tuple[str, ...]:
    """End three services without a word of farewell."""
    dead = ("watcher", "job-ctl", "applier")
    for name in dead:
        stack.kill(name)
    return dead


def restart(stack: Stack, dead: tuple[str, ...]) -> None:
    """Start them again; returns when they are ready."""
    for service in dead:
        stack.start_service(service)
    stack.wait_ready()
