"""What Ray is asked, when, and what its answers do to the failure timer (design §3; contract rayjob §2.11, §3.3)."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from jobworld import CLUSTER, HEAD, HEAD_UID, JOB_ID, URL, JobWorld, at, cluster_status, initializing, rfc, running

from raybus.api.decision import Head, ProbeJob, StopJob, SubmitJob
from raybus.job_ctl import ray
from raybus.job_ctl.deletion import STOP_LIMIT

NEW_HEAD, NEW_UID = "demo-ccccc-head-bbbbb", "uid-head-b"
THE_HEAD = Head(cluster=CLUSTER, pod_uid=HEAD_UID, service=f"{CLUSTER}-head-svc", url=f"http://{URL}")


def http(**fields: Any) -> JobWorld:
    return running("HTTPMode", **fields)


def kinds(world: JobWorld, seconds: float = 1.0) -> list[str]:
    return [type(ask).__name__ for ask in world.decide(seconds).asks]


def known(world: JobWorld, status: str = "RUNNING") -> JobWorld:
    world.status = {**world.status, "jobStatus": status}
    return world


def other_head(world: JobWorld, stored: str = NEW_HEAD) -> JobWorld:
    """The head was replaced; the stored status names head `stored`."""
    del world.objects["pod", HEAD]
    world.status = {**world.status, "rayClusterStatus": cluster_status(head=stored)}
    return world.head(NEW_HEAD, NEW_UID).cluster(head=NEW_HEAD)


def without(world: JobWorld, *key: str) -> JobWorld:
    del world.objects[key[0], key[1]]
    return world


# ------------------------------------------------------------------ asks
ASKS: list[tuple[str, Callable[[], JobWorld], list[str]]] = [
    ("nothing is asked before Running is stored", lambda: initializing("ready", submissionMode="HTTPMode"), []),
    ("a job that may be there is probed first", http, ["ProbeJob"]),
    ("167: Ray does not know it: submit", lambda: http().fact("probe", "missing", 1), ["ProbeJob", "SubmitJob"]),
    ("with a submitter nothing is submitted", lambda: running().fact("probe", "missing", 1), ["ProbeJob"]),
    ("the dashboard is away: no submission", lambda: http().fact("probe", "unreachable", 1), ["ProbeJob"]),
    ("an earlier head did not know it", lambda: http().fact("probe", "missing", 1, head="uid-old"), ["ProbeJob"]),
    (
        "the submission stays asked until Ray says that it knows the job",
        lambda: http().fact("probe", "missing", 1).fact("submit", "ok", 2),
        ["ProbeJob", "SubmitJob"],
    ),
    (
        "a hiccup does not take the submission back",
        lambda: http().fact("submit", "ok", 1).fact("probe", "unreachable", 2),
        ["ProbeJob", "SubmitJob"],
    ),
    (
        "Ray's word is stored: only the probe goes on",
        lambda: known(http()).fact("submit", "ok", 1).ray_says("RUNNING"),
        ["ProbeJob"],
    ),
    ("Ray knows it: only the probe goes on", lambda: http().ray_says("PENDING"), ["ProbeJob"]),
    ("no head pod, nobody to ask", lambda: without(http(), "pod", HEAD), []),
    (
        "a new head that is not stored yet gets no submission",
        lambda: other_head(known(http()), HEAD).fact("probe", "missing", 1, head=NEW_UID),
        ["ProbeJob"],
    ),
    (
        "a new head that is stored gets the job again",
        lambda: other_head(http()).fact("probe", "missing", 1, head=NEW_UID),
        ["ProbeJob", "SubmitJob"],
    ),
]


@pytest.mark.parametrize(("make", "asked"), [pytest.param(*case[1:], id=case[0]) for case in ASKS])
def test_asks(make: Callable[[], JobWorld], asked: list[str]) -> None:
    assert kinds(make()) == asked


def test_asks_name_the_stored_job_and_the_present_head() -> None:
    probe, submit = http().fact("probe", "missing", 1).decide(1).asks
    assert isinstance(probe, ProbeJob) and isinstance(submit, SubmitJob)
    assert (probe.head, probe.job_id) == (submit.head, submit.job_id) == (THE_HEAD, JOB_ID)
    assert submit.request == {"entrypoint": "python main.py", "submission_id": JOB_ID}


def test_a_new_head_takes_back_what_ray_said_in_httpmode() -> None:
    after = other_head(known(http()), HEAD).next_status(1)
    assert "jobStatus" not in after and after["rayClusterStatus"]["head"]["podName"] == NEW_HEAD


def test_a_verdict_that_waits_for_a_look_asks_for_a_soon_one() -> None:
    def fresh(world: JobWorld) -> list[float]:
        return [ask.fresh for ask in world.decide(9).asks if isinstance(ask, ProbeJob)]

    assert fresh(running(activeDeadlineSeconds=99)) == [3.0]
    assert fresh(running(activeDeadlineSeconds=5)) == [1.0]
    assert fresh(running().submitter("Complete").ray_says("RUNNING")) == [1.0]


# ------------------------------------------------------------------ failure timer
def timed(world: JobWorld) -> JobWorld:
    world.status = {**world.status, "jobStatusCheckFailureStartTime": rfc(0)}
    return world


KEPT, SET, CLEARED = rfc(0), rfc(5), None
TIMER: list[tuple[str, Callable[[], JobWorld], str | None]] = [
    ("165: HTTPMode, dashboard away", lambda: http().fact("probe", "unreachable", 1), SET),
    ("113: a second failure keeps the first time", lambda: timed(http()).fact("probe", "unreachable", 1), KEPT),
    ("nothing seen yet", http, CLEARED),
    ("nothing seen yet, timer stored", lambda: timed(http()), KEPT),
    ("95: an answer clears it", lambda: timed(http()).ray_says("RUNNING"), CLEARED),
    ("HTTPMode, unknown: kept until it is submitted", lambda: timed(http()).fact("probe", "missing", 1), KEPT),
    (
        "167: HTTPMode, submitted",
        lambda: timed(http()).fact("probe", "missing", 1).fact("submit", "ok", 2),
        CLEARED,
    ),
    ("HTTPMode, submission refused", lambda: http().fact("probe", "missing", 1).fact("submit", "refused", 2), SET),
    ("HTTPMode, the head is gone", lambda: without(http(), "pod", HEAD), SET),
    ("163: K8sJobMode, submitter runs, dashboard away", lambda: running().fact("probe", "unreachable", 1), SET),
    ("ADR 0062: K8sJobMode, unknown is an answer", lambda: timed(running()).fact("probe", "missing", 1), CLEARED),
    (
        "ADR 0062: K8sJobMode, no submitter pod has run",
        lambda: running().submitter(pods="Pending").fact("probe", "unreachable", 1),
        CLEARED,
    ),
    (
        "K8sJobMode, the only submitter pod has failed",
        lambda: without(running().submitter(failed=1), "pod", "demo-pod").fact("probe", "unreachable", 1),
        SET,
    ),
]


@pytest.mark.parametrize(("make", "since"), [pytest.param(*case[1:], id=case[0]) for case in TIMER])
def test_failure_timer(make: Callable[[], JobWorld], since: str | None) -> None:
    assert make().next_status(5).get("jobStatusCheckFailureStartTime") == since


def test_94_95_the_timer_alone_is_worth_a_write() -> None:
    assert http().fact("probe", "unreachable", 1).decide(5).status is not None
    assert timed(known(http())).ray_says("RUNNING").decide(5).status is not None


# ------------------------------------------------------------------ timers
@pytest.mark.parametrize(
    ("make", "wake"),
    [
        pytest.param(running, None, id="nothing to wait for"),
        pytest.param(lambda: running(activeDeadlineSeconds=60), 60, id="activeDeadlineSeconds"),
        pytest.param(
            lambda: initializing(preRunningDeadlineSeconds=30, activeDeadlineSeconds=60), 30, id="the earlier"
        ),
        pytest.param(lambda: timed(http()).fact("probe", "unreachable", 1), 300, id="status check"),
        pytest.param(lambda: running().submitter("Complete", 4), 35, id="the submitter's timeout"),
        pytest.param(
            lambda: running().ray_says("SUCCEEDED", end_time=1767225600000), 300, id="the transition's grace period"
        ),
        pytest.param(lambda: running(activeDeadlineSeconds=3), None, id="a deadline that waits for a look only"),
    ],
)
def test_wake_at(make: Callable[[], JobWorld], wake: float | None) -> None:
    found = make().decide(5).wake_at
    assert found == (None if wake is None else at(wake))


# ------------------------------------------------------------------ deletion (ADR 0066)
def deleting(world: JobWorld) -> JobWorld:
    world.meta["deletionTimestamp"] = rfc(0)
    return world


def test_a_running_job_is_stopped_first() -> None:
    decision = deleting(known(http())).decide(1)
    (stop,) = decision.asks
    assert isinstance(stop, StopJob) and (stop.head, stop.job_id) == (THE_HEAD, JOB_ID)
    assert decision.finalizers is None and decision.wake_at == at(STOP_LIMIT)


RELEASED: list[tuple[str, Callable[[], JobWorld], float]] = [
    ("Ray has stopped it", lambda: http().fact("stop", "ok", 1), 1),
    ("Ray could not be reached", lambda: http().fact("stop", "unreachable", 1), 1),
    ("the answer did not come in time", http, STOP_LIMIT),
    ("Ray had ended it", lambda: known(http(), "SUCCEEDED"), 1),
    ("nothing was submitted yet", initializing, 1),
    ("the head is gone", lambda: without(http(), "pod", HEAD), 1),
    ("the cluster is gone", lambda: without(http(), "raycluster", CLUSTER), 1),
    ("the spec is invalid", lambda: http(backoffLimit=-1).fact("stop", "ok", 1), 1),
]


@pytest.mark.parametrize(("make", "seconds"), [pytest.param(*case[1:], id=case[0]) for case in RELEASED])
def test_the_finalizer_goes(make: Callable[[], JobWorld], seconds: float) -> None:
    decision = deleting(make()).decide(seconds)
    assert decision.finalizers == frozenset() and decision.asks == () and decision.intents == ()


def test_an_invalid_spec_does_not_keep_a_job_from_being_stopped() -> None:
    assert kinds(deleting(known(http(backoffLimit=-1)))) == ["StopJob"]


def test_a_rayjob_without_our_finalizer_is_left_to_the_others() -> None:
    world = deleting(http())
    world.meta["finalizers"] = ["someone.else/finalizer"]
    decision = world.decide(1)
    assert decision.finalizers is None and decision.asks == ()


@pytest.mark.parametrize(("told", "expected"), [({"probe": 1, "submit": 2}, False), ({"probe": 2, "submit": 1}, True)])
def test_a_clock_that_was_set_back_does_not_make_an_earlier_look_a_later_one(
    told: dict[str, int], expected: bool
) -> None:
    view = http().fact("submit", "ok", 1).fact("probe", "missing", 4).gathered()
    order = {f"{ask}-{view.status.job_id}": place for ask, place in told.items()}
    assert ray.looked_after_submission(msgspec.structs.replace(view, told=order)) is expected
