"""The phases of a RayJob: in each, the first row whose guard holds names the next one (contract rayjob §2.3).

Every transition is a row here; `docs/states/rayjob.md` is drawn from this table. A row that KubeRay does not have names
its ADR. Failed goes on to Retrying only in the pass in which it was entered, so a stored Failed is final.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from raybus.api.decision import Why
from raybus.api.v1 import NEW, JobStatus, RayJobStatus
from raybus.api.v1 import JobDeploymentStatus as P
from raybus.job_ctl import guards as g
from raybus.job_ctl.entry import ENTER
from raybus.job_ctl.situation import Situation

Guard = Callable[[Situation], Why | None]


def _force_failed(status: RayJobStatus) -> RayJobStatus:
    """The submitter's time-out calls the job failed, whatever Ray said last (contract rayjob §2.3)."""
    return replace(status, job_status=JobStatus.FAILED)


class Row(NamedTuple):
    """`guard` holds -> phase `to`. `effect`: a change of the status that only this row makes. `adr`: why KubeRay has
    no such row."""

    guard: Guard
    to: str
    effect: Callable[[RayJobStatus], RayJobStatus] | None = None
    adr: str = ""


TABLE: Mapping[str, tuple[Row, ...]] = {
    NEW: (
        Row(g.refused, P.VALIDATION_FAILED),
        Row(g.always, P.INITIALIZING),
    ),
    P.INITIALIZING: (
        Row(g.refused, P.VALIDATION_FAILED),
        Row(g.active_deadline, P.FAILED),
        Row(g.pre_running_deadline, P.FAILED),
        Row(g.ready_to_run, P.RUNNING),
    ),
    P.RUNNING: (
        Row(g.refused, P.VALIDATION_FAILED),
        Row(g.ray_succeeded, P.COMPLETE),
        Row(g.ray_failed, P.FAILED),
        Row(g.grace_passed_failed, P.FAILED),
        Row(g.grace_passed, P.COMPLETE),
        Row(g.submitter_failed, P.FAILED),
        Row(g.job_unknown, P.FAILED),
        Row(g.cluster_lost, P.FAILED),
        Row(g.head_lost, P.FAILED),
        Row(g.job_lost, P.FAILED),
        Row(g.active_deadline, P.FAILED),
        Row(g.submitter_timeout, P.FAILED, effect=_force_failed),
        Row(g.status_check_timeout, P.FAILED),
    ),
    P.COMPLETE: (),
    P.FAILED: (Row(g.attempts_left, P.RETRYING),),
    P.RETRYING: (Row(g.cleaned_up, NEW),),
    P.VALIDATION_FAILED: (
        Row(g.mended_before_start, NEW, adr="0060"),
        Row(g.mended_after_start, P.INITIALIZING, adr="0060"),
    ),
}

_NOT_BUILT = (Row(g.refused, P.VALIDATION_FAILED),)
"""Phases that only another operator can have stored (Waiting, Suspending, Suspended): validation refuses them."""


def run(s: Situation) -> tuple[Situation, tuple[Why, ...]]:
    """Follow the table until no row holds; the reasons of the transitions, in order."""
    trail: list[Why] = []
    while (found := _first(s)) is not None:
        row, why = found
        status = row.effect(s.status) if row.effect else s.status
        status = replace(ENTER[row.to](replace(s, status=status), why), job_deployment_status=row.to)
        s, trail = replace(s, status=status, fresh=True), [*trail, why]
    return s, tuple(trail)


def _first(s: Situation) -> tuple[Row, Why] | None:
    for row in TABLE.get(s.phase, _NOT_BUILT):
        why = row.guard(s)
        if why is not None:
            return row, why
    return None
