"""From phase to phase: deadlines, the failure timer, what is lost (contract rayjob §2.6, §2.11, §9.5; the numbers are
its scenarios; ADR 0061-0063)."""

from collections.abc import Callable

import pytest
from jobworld import JobWorld, http, known, other_head, rfc, running, spec, timer, without_cluster, without_head

APP = "Failed AppFailed"
TIMEOUT, DEADLINE = "Failed JobStatusCheckTimeoutExceeded", "Failed DeadlineExceeded"
FT = {"gcsFaultToleranceOptions": {}, **spec()["rayClusterSpec"]}
Make = Callable[[], JobWorld]
# (sentence, world, seconds after the start of the attempt, phase and reason after the decision)
CASES: list[tuple[str, Make, float, str]] = [
    # ---- deadlines while Running
    (
        "198: activeDeadlineSeconds, seen RUNNING after it",
        lambda: running(activeDeadlineSeconds=5).ray_says("RUNNING", 5),
        6,
        DEADLINE,
    ),
    (
        "activeDeadlineSeconds, dashboard away after it",
        lambda: running(activeDeadlineSeconds=5).fact("probe", "unreachable", 5),
        6,
        DEADLINE,
    ),
    (
        "ADR 0061: activeDeadlineSeconds, not looked since",
        lambda: running(activeDeadlineSeconds=5).ray_says("RUNNING", 4),
        60,
        "Running",
    ),
    ("ADR 0061: activeDeadlineSeconds, never looked", lambda: running(activeDeadlineSeconds=5), 60, "Running"),
    ("activeDeadlineSeconds, no head to look at", lambda: without_head(running(activeDeadlineSeconds=5)), 5, DEADLINE),
    (
        "ADR 0061: activeDeadlineSeconds, but it has succeeded",
        lambda: http(activeDeadlineSeconds=5).ray_says("SUCCEEDED", 60),
        60,
        "Complete",
    ),
    (
        "ADR 0061: deadline over while only the submitter is late",
        lambda: running(activeDeadlineSeconds=5).ray_says("SUCCEEDED", 60),
        60,
        "Running",
    ),
    (
        "preRunningDeadlineSeconds do not matter any more",
        lambda: running(preRunningDeadlineSeconds=5).ray_says("RUNNING", 9),
        9,
        "Running",
    ),
    # ---- failure timer
    (
        "164: timer older than the timeout, still away",
        lambda: timer(http()).fact("probe", "unreachable", 301),
        302,
        TIMEOUT,
    ),
    (
        "114: timer younger than the timeout",
        lambda: timer(http(), 10).fact("probe", "unreachable", 301),
        302,
        "Running",
    ),
    (
        "ADR 0061: timer ran out while nobody looked",
        lambda: timer(http()).fact("probe", "unreachable", 2),
        900,
        "Running",
    ),
    (
        "ADR 0061: a dashboard that is back saves the job",
        lambda: timer(http()).ray_says("RUNNING", 301),
        302,
        "Running",
    ),
    (
        "timer ran out, submission refused all the time",
        lambda: timer(http()).fact("probe", "missing", 301).fact("submit", "refused", 301),
        302,
        TIMEOUT,
    ),
    ("timer ran out, the head is gone all the time", lambda: timer(without_head(http())), 301, TIMEOUT),
    # ---- lost
    ("ADR 0063: the cluster was deleted", lambda: without_cluster(http()), 1, APP),
    ("ADR 0063: the cluster is being deleted", lambda: http().cluster(deletionTimestamp=rfc(0)), 1, APP),
    ("the cluster was deleted after Ray's end", lambda: without_cluster(known(running(), "SUCCEEDED")), 1, "Running"),
    ("199: the head that ran the job is gone", lambda: without_head(known(running())), 1, APP),
    ("199: the head that ran the job was replaced", lambda: other_head(known(running())), 1, APP),
    (
        "a head that is being deleted is not gone yet",
        lambda: known(running()).head(deletionTimestamp=rfc(0)),
        1,
        "Running",
    ),
    ("the head is gone before Ray knew the job", lambda: other_head(running()), 1, "Running"),
    (
        "with fault tolerance a job survives its head",
        lambda: other_head(known(running(rayClusterSpec=FT))),
        1,
        "Running",
    ),
    ("HTTPMode survives its head: it is submitted again", lambda: other_head(known(http())), 1, "Running"),
    ("ADR 0063: the head was started anew, K8sJobMode", lambda: known(running()).fact("probe", "missing", 1), 1, APP),
    ("ADR 0063: the head was started anew, HTTPMode", lambda: known(http()).fact("probe", "missing", 1), 1, APP),
    (
        "ADR 0063: submitted, then lost before it was seen",
        lambda: http().fact("submit", "ok", 1).fact("probe", "missing", 2),
        2,
        APP,
    ),
    (
        "looked before it was submitted",
        lambda: http().fact("submit", "ok", 2).fact("probe", "missing", 1),
        2,
        "Running",
    ),
]


@pytest.mark.parametrize(("make", "seconds", "after"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_phase(make: Callable[[], JobWorld], seconds: float, after: str) -> None:
    assert make().phase(seconds) == after
