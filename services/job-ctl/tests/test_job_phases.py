"""From phase to phase: starting, what Ray says, the submitter (contract rayjob §2.3-§2.8, §9.5; the numbers are its
scenarios; ADR 0060, 0061)."""

from collections.abc import Callable

import pytest
from jobworld import JobWorld, http, initializing, known, new, rfc, running, without_head, without_submitter

APP, SUBMISSION = "Failed AppFailed", "Failed SubmissionFailed"
GRACE = "JobDeploymentStatusTransitionGracePeriodExceeded"
Make = Callable[[], JobWorld]
# (sentence, world, seconds after the start of the attempt, phase and reason after the decision)
CASES: list[tuple[str, Make, float, str]] = [
    # ---- New, Initializing
    ("128: a new RayJob starts its first attempt", new, 0, "Initializing"),
    ("a refused RayJob starts nothing", lambda: new(backoffLimit=-1), 0, "ValidationFailed ValidationFailed"),
    ("a cluster that is not ready is waited for", initializing, 99, "Initializing"),
    ("138: activeDeadlineSeconds", lambda: initializing(activeDeadlineSeconds=3), 3, "Failed DeadlineExceeded"),
    ("activeDeadlineSeconds not yet", lambda: initializing(activeDeadlineSeconds=3), 2.9, "Initializing"),
    (
        "204: preRunningDeadlineSeconds",
        lambda: initializing(preRunningDeadlineSeconds=5),
        5,
        "Failed PreRunningDeadlineExceeded",
    ),
    (
        "a deadline comes before a cluster that became ready too late",
        lambda: initializing("ready", submissionMode="HTTPMode", preRunningDeadlineSeconds=5),
        5,
        "Failed PreRunningDeadlineExceeded",
    ),
    ("131: HTTPMode with a ready cluster runs", lambda: initializing("ready", submissionMode="HTTPMode"), 1, "Running"),
    ("K8sJobMode waits for its submitter Job", lambda: initializing("ready"), 1, "Initializing"),
    ("131: K8sJobMode runs once the Job is there", lambda: initializing("ready").submitter(pods=""), 1, "Running"),
    (
        "a cluster that is being deleted is not ready",
        lambda: initializing("ready", submissionMode="HTTPMode").cluster("ready", deletionTimestamp=rfc(0)),
        1,
        "Initializing",
    ),
    # ---- what Ray says
    ("nothing heard of Ray", running, 1, "Running"),
    ("HTTPMode, PENDING", lambda: http().ray_says("PENDING"), 1, "Running"),
    ("HTTPMode, a word nobody knows", lambda: http().ray_says("DREAMING"), 1, "Running"),
    ("HTTPMode, SUCCEEDED", lambda: http().ray_says("SUCCEEDED"), 1, "Complete"),
    ("212: HTTPMode, STOPPED", lambda: http().ray_says("STOPPED"), 1, "Complete"),
    ("211: HTTPMode, FAILED", lambda: http().ray_says("FAILED"), 1, APP),
    ("132: SUCCEEDED, submitter not finished", lambda: running().ray_says("SUCCEEDED"), 1, "Running"),
    (
        "133: SUCCEEDED, submitter Complete",
        lambda: running().ray_says("SUCCEEDED").submitter("Complete"),
        1,
        "Complete",
    ),
    ("195: STOPPED, submitter Complete", lambda: running().ray_says("STOPPED").submitter("Complete"), 1, "Complete"),
    ("193: FAILED, submitter Complete", lambda: running().ray_says("FAILED").submitter("Complete"), 1, APP),
    ("FAILED, submitter Failed", lambda: running().ray_says("FAILED").submitter("Failed"), 1, APP),
    (
        "ADR 0061: SUCCEEDED counts although the log could not be followed",
        lambda: running().ray_says("SUCCEEDED").submitter("Failed"),
        1,
        "Complete",
    ),
    (
        "ADR 0063: SUCCEEDED, submitter deleted by someone",
        lambda: without_submitter(running().ray_says("SUCCEEDED")),
        1,
        "Complete",
    ),
    (
        "what an earlier head said counts for nothing",
        lambda: http().ray_says("SUCCEEDED", head="uid-old"),
        1,
        "Running",
    ),
    (
        "a stored end is not taken back",
        lambda: known(running(), "SUCCEEDED").ray_says("RUNNING").submitter("Complete"),
        1,
        "Complete",
    ),
    # ---- grace period
    ("grace period not over", lambda: known(running(), "SUCCEEDED"), 299, "Running"),
    ("grace period over, SUCCEEDED", lambda: known(running(), "SUCCEEDED"), 300, f"Complete {GRACE}"),
    ("grace period over, STOPPED", lambda: known(running(), "STOPPED"), 300, f"Complete {GRACE}"),
    ("grace period over, FAILED", lambda: known(running(), "FAILED"), 300, f"Failed {GRACE}"),
    # ---- submitter
    (
        "194: submitter failed, job unknown",
        lambda: running().submitter("Failed").fact("probe", "missing", 2),
        2,
        SUBMISSION,
    ),
    (
        "194: submitter failed, dashboard away",
        lambda: running().submitter("Failed").fact("probe", "unreachable", 2),
        2,
        SUBMISSION,
    ),
    (
        "ADR 0061: submitter failed, but nobody has looked since",
        lambda: running().submitter("Failed", 5).fact("probe", "missing", 2),
        9,
        "Running",
    ),
    ("submitter failed, no head to look at", lambda: without_head(running().submitter("Failed")), 2, SUBMISSION),
    (
        "submitter finished, Ray does not know the job",
        lambda: running().submitter("Complete").fact("probe", "missing", 2),
        2,
        APP,
    ),
    (
        "submitter finished, that was seen before",
        lambda: running().submitter("Complete", 5).fact("probe", "missing", 2),
        7,
        "Running",
    ),
    (
        "201: submitter finished, job runs on 30 s later",
        lambda: running().submitter("Complete").ray_says("RUNNING", 31),
        31,
        f"Failed {GRACE}",
    ),
    (
        "submitter finished, job runs on not yet 30 s later",
        lambda: running().submitter("Complete").ray_says("RUNNING", 29),
        40,
        "Running",
    ),
    (
        "ADR 0061: after 30 s away, SUCCEEDED is not overruled",
        lambda: running().submitter("Complete").ray_says("SUCCEEDED", 31),
        99,
        "Complete",
    ),
    # ---- refused while under way
    ("an invalid edit while Running", lambda: running(backoffLimit=-1), 1, "ValidationFailed ValidationFailed"),
    ("an unknown mode while Running", lambda: running("Telepathy"), 1, "ValidationFailed ValidationFailed"),
]


@pytest.mark.parametrize(("make", "seconds", "after"), [pytest.param(*case[1:], id=case[0]) for case in CASES])
def test_phase(make: Callable[[], JobWorld], seconds: float, after: str) -> None:
    assert make().phase(seconds) == after
