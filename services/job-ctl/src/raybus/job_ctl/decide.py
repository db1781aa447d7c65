"""One RayJob: view, time and settings in, everything that is to happen out (design §4). Pure."""

from collections.abc import Iterator
from typing import cast

import msgspec

from raybus.api.decision import Decision, Json, Note, Why
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.api.v1 import NEW, RayJobStatus
from raybus.api.v1 import JobDeploymentStatus as P
from raybus.job_ctl import ray
from raybus.job_ctl.children import clean_up_at, intents
from raybus.job_ctl.deletion import decide_deletion
from raybus.job_ctl.explain import explain
from raybus.job_ctl.gather import JobView
from raybus.job_ctl.guards import deadlines
from raybus.job_ctl.labels import FINALIZER, OUR_MANAGER
from raybus.job_ctl.observe import observe, tracked
from raybus.job_ctl.phases import run
from raybus.job_ctl.settings import JobKnobs
from raybus.job_ctl.situation import Situation
from raybus.job_ctl.validate import problem

_URGENT = (P.COMPLETE, P.FAILED, P.RETRYING)


def decide(view: JobView, now: Instant, knobs: JobKnobs) -> Decision:
    """The complete decision about one RayJob."""
    manager = view.job.spec.managed_by
    if manager not in (None, "", OUR_MANAGER):
        return Decision(because=(_managed_elsewhere(view, manager),))
    if view.meta.deletion_timestamp is not None:
        return decide_deletion(view, now)
    before = observe(Situation(view=view, now=now, knobs=knobs, status=view.status, problem=problem(view.job, knobs)))
    after, trail = run(before)
    todo = intents(after)
    waits = [at for at in (*deadlines(after), clean_up_at(after)) if at is not None]
    told = {why.reason for why in trail}
    changed = _worth_writing(view.status, after.status)
    return Decision(
        status=_json(after.status) if changed else None,
        finalizers=None if after.phase in (NEW, P.VALIDATION_FAILED) else frozenset({FINALIZER}),
        intents=todo,
        asks=ray.asks(view, after.by_http, soon=any(at <= now for at in deadlines(before))),
        wake_at=min((at for at in waits if at > now), default=None),
        notes=tuple(_notes(after)) if changed else (),
        because=(*trail, *(why for why in explain(after, todo) if why.reason not in told)),
        progress=changed and _only_progress(view.status, after.status),
        urgent=after.phase in _URGENT,
    )


def _managed_elsewhere(view: JobView, manager: str | None) -> Why:
    return Why(
        reason=Reason.MANAGED_ELSEWHERE,
        text=f"RayJob {view.name} is managed by {manager}, not by Raybus",
        about=view.ref("RayJob", view.name),
    )


def _notes(s: Situation) -> Iterator[Note]:
    """A Warning beside the status that refuses the spec, once per generation; also in a RayJob that has ended (ADR
    0060)."""
    if s.problem is not None:
        text = f"{s.view.namespace}/{s.view.name}: {s.problem.text}"
        yield Note(type="Warning", reason=s.problem.reason, action="Validate", text=text)


def _json(status: RayJobStatus) -> Json:
    return cast(Json, msgspec.to_builtins(status))


def _worth_writing(stored: RayJobStatus, wanted: RayJobStatus) -> bool:
    """Message, reason, Ray's times and the cluster's time stamp alone are not (contract rayjob §2.7)."""
    return _key(stored) != _key(wanted)


def _key(status: RayJobStatus) -> tuple[object, ...]:
    return (
        status.job_deployment_status,
        status.job_status,
        status.job_status_check_failure_start_time,
        status.observed_generation,
        status.ray_cluster_name,
        tracked(status.ray_cluster_status),
    )


def _only_progress(stored: RayJobStatus, wanted: RayJobStatus) -> bool:
    """Whether nothing but counts, conditions and generations has changed, which may wait for quiet (design §4)."""
    was, now = stored.ray_cluster_status, wanted.ray_cluster_status
    same_head = was.head.pod_name == now.head.pod_name or wanted.job_deployment_status != P.RUNNING
    return _key(stored)[:3] == _key(wanted)[:3] and was.state == now.state and same_head
