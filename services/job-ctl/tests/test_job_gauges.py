"""What the page of metrics says of RayJobs, line by line (contract platform §7.1)."""

import msgspec
import pytest
from jobworld import JobWorld, Json, at, rfc, spec

from raybus.api.view import Entry
from raybus.job_ctl.gauges import GAUGES
from raybus.job_ctl.seen import DECODERS
from raybus.runtime.root_gauges import Kept, Shown, keep, readings
from raybus.telemetry.metrics import exposition, read_when_asked

LABELS = 'name="demo",namespace="n",uid="uid-demo"'
INFO = f"kuberay_job_info{{{LABELS}}} 1"

Version = tuple[float, Json]
"""(seconds after the start when it was seen, status)."""


def lines(*versions: Version, managed_by: str | None = None) -> list[str]:
    """The lines about one RayJob that was seen in these versions."""
    kept: Kept = {}
    before: Entry | None = None
    for seconds, status in versions:
        raw = JobWorld(spec=spec(managedBy=managed_by), status=status).raw
        entry = Entry(value=DECODERS["rayjob"](msgspec.json.encode(raw)), uid="uid-demo", observed_at=at(seconds))
        keep(GAUGES, kept, before, entry)
        before = entry
    assert before is not None
    shown = Shown("n", "demo", before.uid, before.value, kept)
    with read_when_asked(lambda: readings(GAUGES, [shown])):
        return [line for line in exposition().decode().splitlines() if line.startswith("kuberay_")]


def stored(phase: str, failed: int = 0, start: float = 0.0, end: float | None = None) -> Json:
    ended = {} if end is None else {"endTime": rfc(end)}
    return {"jobDeploymentStatus": phase, "failed": failed, "succeeded": 0, "startTime": rfc(start), **ended}


def state(phase: str) -> str:
    return f'kuberay_job_deployment_status{{deployment_status="{phase}",{LABELS}}} 1'


def duration(phase: str, retry: int, seconds: float) -> str:
    labels = f'job_deployment_status="{phase}",name="demo",namespace="n",retry_count="{retry}",uid="uid-demo"'
    return f"kuberay_job_execution_duration_seconds{{{labels}}} {seconds}"


RUNNING = (1.0, stored("Running"))
COMPLETE = (61.0, stored("Complete", end=60.0))
FIRST_FAILED = (30.5, stored("Retrying", failed=1))
SECOND_STARTED = (40.0, stored("Initializing", failed=1, start=40.0))


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([(0.0, {})], [INFO, state("")]),
        ([RUNNING], [INFO, state("Running")]),
        ([RUNNING, COMPLETE], [INFO, state("Complete"), duration("Complete", 0, 60)]),
        # The page of a replica that has just taken the partition.
        ([COMPLETE], [INFO, state("Complete"), duration("Complete", 0, 60)]),
        ([(61.0, stored("Failed", failed=1, end=60.0))], [INFO, state("Failed"), duration("Failed", 0, 60)]),
        # One series for each attempt; a later version of the same phase changes none.
        ([RUNNING, FIRST_FAILED], [INFO, state("Retrying"), duration("Retrying", 0, 30.5)]),
        (
            [RUNNING, FIRST_FAILED, (35.0, FIRST_FAILED[1])],
            [INFO, state("Retrying"), duration("Retrying", 0, 30.5)],
        ),
        (
            [RUNNING, FIRST_FAILED, (39.0, {"failed": 1}), SECOND_STARTED],
            [INFO, state("Initializing"), duration("Retrying", 0, 30.5)],
        ),
        (
            [RUNNING, FIRST_FAILED, SECOND_STARTED, (99.0, stored("Complete", failed=1, start=40.0, end=90.0))],
            [INFO, state("Complete"), duration("Retrying", 0, 30.5), duration("Complete", 1, 50)],
        ),
        (
            [RUNNING, FIRST_FAILED, SECOND_STARTED, (99.0, stored("Failed", failed=2, start=40.0, end=90.0))],
            [INFO, state("Failed"), duration("Retrying", 0, 30.5), duration("Failed", 1, 50)],
        ),
        # Never begun, or told by somebody who leaves the times out.
        ([(1.0, stored("ValidationFailed"))], [INFO, state("ValidationFailed")]),
        ([(1.0, {"jobDeploymentStatus": "Failed", "failed": 0})], [INFO, state("Failed")]),
        (
            [(1.0, {"jobDeploymentStatus": "Failed", "startTime": rfc(0), "endTime": rfc(5)})],
            [INFO, state("Failed"), duration("Failed", 0, 5)],
        ),
    ],
)
def test_lines_about_a_rayjob(versions: list[Version], expected: list[str]) -> None:
    assert lines(*versions) == expected


@pytest.mark.parametrize(
    ("manager", "ours"), [(None, True), ("ray.io/kuberay-operator", True), ("kueue.x-k8s.io/multikueue", False)]
)
def test_the_times_of_what_another_controller_runs_are_not_ours(manager: str | None, ours: bool) -> None:
    found = lines(RUNNING, COMPLETE, managed_by=manager)
    assert (duration("Complete", 0, 60) in found) == ours and found[:2] == [INFO, state("Complete")]
