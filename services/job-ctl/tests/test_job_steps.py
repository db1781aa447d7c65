"""What is stored, made and deleted on the way (contract rayjob §2.3-§2.10, §6.2, §9.3, §9.5; the numbers are its
scenarios; ADR 0060, 0063)."""

from collections.abc import Callable
from typing import Any

import pytest
from jobworld import (
    CLUSTER,
    JOB_ID,
    URL,
    JobWorld,
    cluster_status,
    http,
    initializing,
    known,
    new,
    rfc,
    running,
    timer,
    without_cluster,
    without_submitter,
)

from raybus.api.decision import Create, Delete
from raybus.job_ctl.settings import JobKnobs


# ------------------------------------------------------------------ what entering a phase does
def test_128_the_first_attempt_has_names_and_start_before_anything_is_made() -> None:
    decision = new().decide(0)
    status = decision.status
    assert status is not None and decision.finalizers == frozenset({"ray.io/rayjob-finalizer"})
    assert status["startTime"] == rfc(0) and (status["failed"], status["succeeded"]) == (0, 0)
    (create,) = decision.intents
    assert isinstance(create, Create) and create.ref.kind == "RayCluster"
    assert create.ref.name == status["rayClusterName"] == create.body["metadata"]["name"]
    assert decision.asks == ()


def test_names_depend_on_the_version_of_the_rayjob_and_differ_from_each_other() -> None:
    first, again, later = (
        new().next_status(),
        new().next_status(9),
        JobWorld(meta={"resourceVersion": "8"}).next_status(),
    )
    assert first["rayClusterName"] == again["rayClusterName"] and first["jobId"] == again["jobId"]
    assert len({first["rayClusterName"], first["jobId"], later["rayClusterName"], later["jobId"]}) == 4


def test_an_attempt_whose_status_lost_its_names_gets_some_before_anything_is_made() -> None:
    world = without_cluster(initializing(""))
    del world.status["rayClusterName"]
    decision = world.decide(1)
    (create,) = decision.intents
    assert (
        decision.status is not None
        and isinstance(create, Create)
        and create.ref.name == decision.status["rayClusterName"] != ""
    )


def test_a_given_job_id_is_used() -> None:
    assert new(jobId="mine").next_status()["jobId"] == "mine"


def test_131_running_stores_the_dashboard_and_makes_the_head_service() -> None:
    world = initializing("ready").submitter(pods="")
    decision = world.decide(1)
    assert decision.status is not None and decision.status["dashboardURL"] == URL
    assert [i.ref.name for i in decision.intents if not isinstance(i, Delete | Create) and hasattr(i, "ref")] == [
        "demo-head-svc"
    ]


def test_the_job_is_created_once_the_cluster_is_ready() -> None:
    assert [str(i.ref) for i in initializing("ready").decide(1).intents if isinstance(i, Create)] == ["Job n/demo"]
    assert initializing("").decide(1).intents == ()


def test_83_a_job_that_is_there_stays_untouched() -> None:
    assert running().decide(1).intents == ()


def test_adr_0063_a_submitter_that_vanished_is_made_again() -> None:
    (create,) = without_submitter(running()).decide(1).intents
    assert isinstance(create, Create) and create.ref.kind == "Job"


def test_a_head_service_that_leads_to_the_last_attempt_is_updated() -> None:
    world = http()
    world.objects["service", "demo-head-svc"]["spec"]["selector"] = {"ray.io/cluster": "demo-older"}
    (update,) = world.decide(1).intents
    assert not isinstance(update, Create) and update.done is not None and update.done.reason == "UpdatedService"


def test_a_cluster_that_vanished_before_running_is_made_again() -> None:
    (create,) = without_cluster(initializing()).decide(1).intents
    assert isinstance(create, Create) and create.ref.name == CLUSTER


@pytest.mark.parametrize(
    ("status", "succeeded"), [pytest.param("SUCCEEDED", 1, id="SUCCEEDED"), pytest.param("STOPPED", 0, id="STOPPED")]
)
def test_complete_counts_success_only(status: str, succeeded: int) -> None:
    after = http().ray_says(status, message="bye", start_time=1767225600000, end_time=1767225601000).next_status(9)
    assert (after["succeeded"], after["failed"]) == (succeeded, 0)
    assert (after["endTime"], after["message"]) == (rfc(9), "bye")
    assert after["rayJobInfo"] == {"startTime": rfc(0), "endTime": rfc(1)}


def test_failed_counts_and_says_what_ray_said() -> None:
    after = http().ray_says("FAILED", message="boom").next_status(9)
    assert (after["succeeded"], after["failed"], after["message"]) == (0, 1, "boom")


def test_201_the_submitters_timeout_calls_the_job_failed() -> None:
    after = running().submitter("Complete").ray_says("RUNNING", 31).next_status(31)
    assert after["jobStatus"] == "FAILED"
    assert "submitter finished at 2026-01-01 00:00:00" in after["message"] and "within 30s" in after["message"]


def test_the_status_check_timeout_names_its_limit() -> None:
    world = timer(http()).fact("probe", "unreachable", 301)
    assert "exceeded timeout of 300s" in world.next_status(302)["message"]


# ------------------------------------------------------------------ retry
RETRIED = [
    ("139: AppFailed", lambda n: http(backoffLimit=n).ray_says("FAILED"), 1),
    ("221: SubmissionFailed", lambda n: running(backoffLimit=n).submitter("Failed").fact("probe", "missing", 2), 2),
    (
        "PreRunningDeadlineExceeded",
        lambda n: initializing(backoffLimit=n, preRunningDeadlineSeconds=5),
        5,
    ),
    ("the submitter's timeout", lambda n: running(backoffLimit=n).submitter("Complete").ray_says("RUNNING", 31), 31),
]


@pytest.mark.parametrize(("make", "seconds"), [pytest.param(*case[1:], id=case[0]) for case in RETRIED])
def test_it_is_retried(make: Callable[[int], JobWorld], seconds: float) -> None:
    world = make(1)
    decision = world.decide(seconds)
    assert decision.status is not None and decision.status["jobDeploymentStatus"] == "Retrying"
    assert decision.status["failed"] == 1 and "endTime" not in decision.status and decision.status["reason"]
    deleted = {i.ref.kind for i in decision.intents if isinstance(i, Delete)}
    assert deleted == ({"RayCluster", "Job"} if ("job", "demo") in world.objects else {"RayCluster"})


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: initializing(backoffLimit=2, activeDeadlineSeconds=5), id="222: DeadlineExceeded"),
        pytest.param(
            lambda: timer(http(backoffLimit=2)).fact("probe", "unreachable", 301), id="JobStatusCheckTimeoutExceeded"
        ),
        pytest.param(lambda: http(backoffLimit=0).ray_says("FAILED"), id="backoffLimit 0"),
        pytest.param(lambda: http(backoffLimit=...).ray_says("FAILED"), id="backoffLimit unset"),
    ],
)
def test_it_is_not_retried(make: Callable[[], JobWorld]) -> None:
    assert make().phase(400).startswith("Failed ")


def test_the_last_attempt_stays_failed() -> None:
    world = http(backoffLimit=2).ray_says("FAILED")
    world.status = {**world.status, "failed": 2}
    assert (world.phase(1), world.next_status(1)["failed"]) == ("Failed AppFailed", 3)


def test_a_stored_failed_is_final_whatever_backoff_limit_says_later() -> None:
    world = http(backoffLimit=9)
    world.status = {**world.status, "jobDeploymentStatus": "Failed", "failed": 1, "endTime": rfc(1)}
    decision = world.decide(2)
    assert decision.status is None and decision.intents == ()


def retrying() -> JobWorld:
    world = running(backoffLimit=1)
    world.status = {**world.status, "jobDeploymentStatus": "Retrying", "failed": 1, "jobStatus": "FAILED"}
    return world


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(retrying, id="both there"),
        pytest.param(lambda: without_cluster(retrying()), id="Job there"),
        pytest.param(lambda: without_submitter(retrying()), id="cluster there"),
        pytest.param(lambda: without_submitter(retrying()).cluster(deletionTimestamp=rfc(0)), id="cluster held"),
    ],
)
def test_the_next_attempt_waits_until_the_last_one_is_gone(make: Callable[[], JobWorld]) -> None:
    assert make().next_status(9)["jobDeploymentStatus"] == "Retrying"


def test_the_next_attempt_has_new_names_and_a_new_start() -> None:
    after = without_submitter(without_cluster(retrying())).next_status(9)
    assert after["jobDeploymentStatus"] == "Initializing" and after["startTime"] == rfc(9)
    assert after["rayClusterName"] not in ("", CLUSTER) and after["jobId"] not in ("", JOB_ID)
    assert after["failed"] == 1 and not {"jobStatus", "dashboardURL", "reason"} & after.keys()


# ------------------------------------------------------------------ clean-up
def ended(phase: str = "Complete", **fields: Any) -> JobWorld:
    world = running(**fields)
    world.status = {**world.status, "jobDeploymentStatus": phase, "jobStatus": "SUCCEEDED", "endTime": rfc(10)}
    return world


@pytest.mark.parametrize(
    ("make", "seconds", "deleted"),
    [
        pytest.param(ended, 99, [], id="without shutdown nothing goes"),
        pytest.param(lambda: ended(shutdownAfterJobFinishes=True), 10, ["RayCluster"], id="134: the cluster goes"),
        pytest.param(lambda: ended("Failed", shutdownAfterJobFinishes=True), 10, ["RayCluster"], id="also when Failed"),
        pytest.param(
            lambda: ended(shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=5), 14, [], id="TTL not over"
        ),
        pytest.param(
            lambda: ended(shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=5), 15, ["RayCluster"], id="TTL over"
        ),
        pytest.param(
            lambda: ended(shutdownAfterJobFinishes=True).cluster(deletionTimestamp=rfc(11)), 12, [], id="going already"
        ),
        pytest.param(lambda: without_cluster(ended(shutdownAfterJobFinishes=True)), 12, [], id="gone already"),
    ],
)
def test_clean_up(make: Callable[[], JobWorld], seconds: float, deleted: list[str]) -> None:
    decision = make().decide(seconds)
    assert [i.ref.kind for i in decision.intents if isinstance(i, Delete)] == deleted
    assert decision.asks == ()


def test_the_ttl_is_a_timer() -> None:
    decision = ended(shutdownAfterJobFinishes=True, ttlSecondsAfterFinished=5).decide(11)
    assert decision.wake_at is not None and rfc(15) == rfc(decision.wake_at - 1767225600)


def test_137_the_rayjob_itself_goes_if_the_operator_says_so() -> None:
    world = ended(shutdownAfterJobFinishes=True)
    world.knobs = JobKnobs(delete_rayjob=True)
    assert [(i.ref.kind, i.uid) for i in world.decide(10).intents if isinstance(i, Delete)] == [("RayJob", "uid-demo")]


# ------------------------------------------------------------------ what is written
def test_92_a_message_alone_is_not_written() -> None:
    world = known(http()).ray_says("RUNNING", message="news")
    world.status = {**world.status, "message": "old"}
    assert world.decide(1).status is None


def test_93_a_message_goes_along_with_a_new_status() -> None:
    assert http().ray_says("RUNNING", message="news").next_status(1)["message"] == "news"


def test_117_the_clusters_time_stamp_alone_is_not_written() -> None:
    world = running()
    world.objects["raycluster", CLUSTER]["status"].update(lastUpdateTime=rfc(5), observedGeneration=9)
    assert world.decide(1).status is None


def test_130_202_what_else_the_cluster_says_is_mirrored_in_its_time() -> None:
    world = initializing()
    world.objects["raycluster", CLUSTER]["status"]["readyWorkerReplicas"] = 3
    decision = world.decide(1)
    assert decision.status is not None and decision.status["rayClusterStatus"]["readyWorkerReplicas"] == 3
    assert decision.progress


def test_a_new_phase_is_never_mere_progress() -> None:
    assert not http().ray_says("SUCCEEDED").decide(1).progress
    assert http().ray_says("SUCCEEDED").decide(1).urgent


# ------------------------------------------------------------------ refused, mended (ADR 0060)
def refused(started: bool, generation: int, **fields: Any) -> JobWorld:
    world = running(**fields) if started else new(**fields)
    world.status = {
        **world.status,
        "jobDeploymentStatus": "ValidationFailed",
        "reason": "ValidationFailed",
        "message": "old",
        "observedGeneration": 1,
    }
    world.meta["generation"] = generation
    return world


@pytest.mark.parametrize(
    ("make", "after"),
    [
        pytest.param(lambda: refused(False, 1), "ValidationFailed ValidationFailed", id="not edited since"),
        pytest.param(lambda: refused(False, 2), "Initializing", id="edited and fine: it starts"),
        pytest.param(lambda: refused(True, 2), "Running", id="edited and fine: the attempt goes on"),
        pytest.param(
            lambda: refused(False, 2, backoffLimit=-1), "ValidationFailed ValidationFailed", id="edited, still refused"
        ),
    ],
)
def test_a_refused_rayjob(make: Callable[[], JobWorld], after: str) -> None:
    assert make().phase(1) == after


def test_an_interrupted_attempt_keeps_its_names() -> None:
    after = refused(True, 2).next_status(1)
    assert (after["rayClusterName"], after["jobId"], after["startTime"]) == (CLUSTER, JOB_ID, rfc(0))
    assert not {"reason", "message"} & after.keys()


def test_a_refusal_is_told_once_per_generation() -> None:
    (note,) = new(backoffLimit=-1).decide(0).notes
    assert (note.type, note.reason, note.action) == ("Warning", "InvalidRayJobSpec", "Validate")
    assert note.text.startswith("n/demo: The RayJob spec is invalid")
    assert refused(False, 1, backoffLimit=-1).decide(0).notes == ()
    assert len(refused(False, 2, backoffLimit=-1).decide(0).notes) == 1


def test_a_refused_rayjob_gets_no_finalizer_and_no_child() -> None:
    decision = new(backoffLimit=-1).decide(0)
    assert (decision.finalizers, decision.intents, decision.asks) == (None, (), ())


def test_a_finished_rayjob_is_not_refused_any_more() -> None:
    world = ended(backoffLimit=-1)
    world.meta["generation"] = 2
    decision = world.decide(20)
    assert decision.status is not None and decision.status["jobDeploymentStatus"] == "Complete"
    assert [note.reason for note in decision.notes] == ["InvalidRayJobSpec"]


@pytest.mark.parametrize("phase", ["Waiting", "Suspending", "Suspended", "NoSuchPhase"])
def test_a_phase_of_another_operator_never_breaks_anything(phase: str) -> None:
    world = running()
    world.status = {**world.status, "jobDeploymentStatus": phase}
    assert world.next_status(1)["jobDeploymentStatus"] == "ValidationFailed"


def test_another_managers_rayjob_is_left_alone() -> None:
    world = running(managedBy="kueue.x-k8s.io/multikueue")
    world.meta["deletionTimestamp"] = rfc(0)
    decision = world.decide(1)
    assert (decision.status, decision.finalizers, decision.intents, decision.asks) == (None, None, (), ())
    assert [why.reason for why in decision.because] == ["ManagedElsewhere"]


def test_the_mirror_of_the_cluster_is_what_the_cluster_says() -> None:
    assert running().next_status(1)["rayClusterStatus"] == cluster_status()
