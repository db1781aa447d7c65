"""What holds of every decision, whatever the view: drawn worlds, sound and broken alike."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jobworld import (
    CLUSTER,
    HEAD,
    JobWorld,
    known,
    rfc,
    running,
    spec,
    without_cluster,
    without_head,
    without_submitter,
)

from raybus.api.decision import Create, CreatePods, Delete, StopJob, SubmitJob

PHASES = ["", "Initializing", "Running", "Complete", "Failed", "Retrying", "ValidationFailed", "Suspended", "Nonsense"]
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    "submissionMode": st.sampled_from(["", "K8sJobMode", "HTTPMode", "InteractiveMode", "Telepathy"]),
    "backoffLimit": st.sampled_from([-1, 0, 2]),
    "activeDeadlineSeconds": st.sampled_from([0, 1, 50]),
    "preRunningDeadlineSeconds": st.sampled_from([1, 50]),
    "shutdownAfterJobFinishes": st.booleans(),
    "ttlSecondsAfterFinished": st.sampled_from([0, 7]),
    "runtimeEnvYAML": st.sampled_from(["", "pip: [a]", "[", "working_dir: ."]),
    "rayClusterSpec": st.sampled_from([..., {}, {"headGroupSpec": {"template": {"spec": {"containers": []}}}}]),
    "suspend": st.just(True),
}
OUTCOMES = ["ok", "missing", "refused", "unreachable"]


@st.composite
def worlds(draw: st.DrawFn) -> JobWorld:
    """A RayJob in any phase, with any children and facts."""
    world = running("HTTPMode" if draw(st.booleans()) else "K8sJobMode")
    world.spec = spec(**draw(st.fixed_dictionaries({}, optional=FIELDS)))
    world.status["jobDeploymentStatus"] = draw(st.sampled_from(PHASES))
    if draw(st.booleans()):
        world = known(world, draw(st.sampled_from(["RUNNING", "SUCCEEDED", "FAILED", "STOPPED", "?"])))
    for key in draw(st.sets(st.sampled_from(["jobId", "rayClusterName", "dashboardURL", "startTime"]), max_size=2)):
        del world.status[key]
    world.submitter(draw(st.sampled_from(["", "Complete", "Failed"])), draw(st.integers(0, 60)))
    for lose in draw(st.sets(st.sampled_from([without_cluster, without_submitter]))):
        lose(world)
    if draw(st.booleans()) and ("pod", HEAD) in world.objects:
        without_head(world)
    for ask in draw(st.sets(st.sampled_from(["probe", "submit", "stop"]))):
        outcome = draw(st.sampled_from(OUTCOMES))
        job = {"status": draw(st.sampled_from(["PENDING", "SUCCEEDED", "FAILED"]))} if outcome == "ok" else {}
        world.fact(ask, outcome, draw(st.integers(0, 400)), **job)
    world.meta["generation"] = draw(st.integers(1, 2))
    if draw(st.booleans()):
        world.meta["deletionTimestamp"] = rfc(0)
    return world


@settings(max_examples=60, deadline=None)
@given(worlds(), st.integers(0, 1000))
def test_deciding_is_the_same_every_time_and_comes_to_rest(world: JobWorld, seconds: int) -> None:
    decision = world.decide(seconds)
    assert decision == world.decide(seconds)
    for _ in range(4):
        if decision.status is None:
            break
        world.status = decision.status
        decision = world.decide(seconds)
    assert decision.status is None


@settings(max_examples=60, deadline=None)
@given(worlds(), st.integers(0, 1000))
def test_effects_are_bound_to_what_is_stored(world: JobWorld, seconds: int) -> None:
    decision, deleting = world.decide(seconds), "deletionTimestamp" in world.meta
    names = {(decision.status or world.status).get("rayClusterName"), world.status.get("rayClusterName")}
    for ask in decision.asks:
        assert world.status["jobDeploymentStatus"] == "Running" and ask.job_id == world.status["jobId"]
        assert ask.head.cluster == CLUSTER and isinstance(ask, StopJob) == deleting
        assert not isinstance(ask, SubmitJob) or not world.status.get("jobStatus")
    for intent in decision.intents:
        assert not deleting and not isinstance(intent, CreatePods)
        assert intent.ref.kind != "RayCluster" or intent.ref.name in names
        assert not isinstance(intent, Create) or decision.finalizers
        assert not isinstance(intent, Delete) or intent.uid
    assert decision.wake_at is None or decision.wake_at > seconds


@settings(max_examples=60, deadline=None)
@given(worlds(), st.integers(0, 1000))
def test_what_has_ended_stays_ended(world: JobWorld, seconds: int) -> None:
    before = world.status["jobDeploymentStatus"]
    after = world.next_status(seconds)
    if before in ("Complete", "Failed"):
        assert after["jobDeploymentStatus"] == before
    for counter in ("failed", "succeeded"):
        assert after.get(counter, 0) - world.status.get(counter, 0) in (0, 1)
