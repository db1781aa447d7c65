"""The conditions of a RayCluster's status (contract reconcile §15), each as a function of what is seen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from raybus.api.messages import Refusal
from raybus.api.reasons import Reason
from raybus.api.times import Instant, format_time
from raybus.api.v1 import ClusterConditionType as Type
from raybus.api.v1 import Condition
from raybus.api.v1 import ConditionStatus as Status
from raybus.cluster_ctl.pods import Pod

PROVISIONED_MESSAGE = "All Ray Pods are ready for the first time"
PROVISIONING_MESSAGE = "RayCluster Pods are being provisioned for first time"
SUSPENDED_MESSAGE = "RayCluster has been suspended"


def by_type(conditions: Sequence[Condition]) -> Mapping[str, Condition]:
    """Conditions by their type."""
    return {condition.type: condition for condition in conditions}


def holds(conditions: Sequence[Condition], kind: Type) -> bool:
    """Whether a condition is there and True."""
    return any(condition.type == kind and condition.status == Status.TRUE for condition in conditions)


class Suspension(NamedTuple):
    """Where a cluster stands between running and suspended; at most one of the two holds."""

    suspending: bool
    suspended: bool


def suspension(stored: Sequence[Condition], suspend: bool | None, any_pods: bool) -> Suspension:
    """The next step of a suspension (contract reconcile §8): once begun it goes on to its end whatever the spec says
    by then, and only an explicit `false` (`suspend`: what the spec says) ends it."""
    if holds(stored, Type.SUSPENDING):
        return Suspension(suspending=any_pods, suspended=not any_pods)
    if holds(stored, Type.SUSPENDED):
        return Suspension(suspending=False, suspended=suspend is not False)
    return Suspension(suspending=bool(suspend), suspended=False)


def build(
    stored: Sequence[Condition],
    head: Pod | None,
    pods: Sequence[Pod],
    refusal: tuple[Refusal, Reason] | None,
    suspend: bool | None,
) -> tuple[Condition, ...]:
    """All conditions in their order, without times. `refusal`: the present one about a pod, with its marker;
    `suspend`: `spec.suspend`."""
    known = by_type(stored)
    next_step = suspension(stored, suspend, bool(pods))
    return (
        *(() if refusal is None else (_replica_failure(*refusal),)),
        _head_ready(head),
        _condition(Type.PROVISIONED, Status.FALSE, Reason.RAY_CLUSTER_PODS_PROVISIONING, SUSPENDED_MESSAGE)
        if next_step.suspended
        else _provisioned(known.get(Type.PROVISIONED), pods),
        _plain(Type.SUSPENDED, next_step.suspended),
        _plain(Type.SUSPENDING, next_step.suspending),
    )


def with_times(conditions: Sequence[Condition], stored: Sequence[Condition], now: Instant) -> tuple[Condition, ...]:
    """`lastTransitionTime` moves only when a condition's status does."""
    known = by_type(stored)
    return tuple(_timed(condition, known.get(condition.type), now) for condition in conditions)


def _timed(condition: Condition, stored: Condition | None, now: Instant) -> Condition:
    same = stored is not None and stored.status == condition.status and stored.last_transition_time
    return _condition(condition.type, condition.status, condition.reason, condition.message, same or format_time(now))


def _condition(kind: str, status: str, reason: str, message: str = "", since: str = "") -> Condition:
    return Condition(type=kind, status=status, reason=reason, message=message, last_transition_time=since)


def _replica_failure(refusal: Refusal, marker: Reason) -> Condition:
    return _condition(Type.REPLICA_FAILURE, Status.TRUE, marker, f"{marker}\n{refusal.message}")


def _head_ready(head: Pod | None) -> Condition:
    if head is None:
        return _condition(Type.HEAD_POD_READY, Status.FALSE, Reason.HEAD_POD_NOT_FOUND, "Head Pod not found")
    if head.ready is None:
        return _condition(Type.HEAD_POD_READY, Status.FALSE, Reason.UNKNOWN)
    status, reason, message = head.ready.status, head.ready.reason, head.ready.message
    if not reason:
        reason = Reason.HEAD_POD_RUNNING_AND_READY if status == Status.TRUE else Reason.UNKNOWN
    if reason == "ContainersNotReady" and (waiting := _first_waiting(head)) is not None:
        reason, detail = waiting
        message = f"{message}; {detail}" if message else detail
    return _condition(Type.HEAD_POD_READY, status, reason, message)


def _first_waiting(head: Pod) -> tuple[str, str] | None:
    """(reason, `name: message`) of the first container that waits or has ended and says why; an empty reason would
    not be accepted as a condition's (contract reconcile §26.47)."""
    for container in head.containers:
        state = container.state.waiting or container.state.terminated
        if state is not None and state.reason:
            return state.reason, f"{container.name}: {state.message}"
    return None


def _provisioned(stored: Condition | None, pods: Sequence[Pod]) -> Condition:
    """Sticky once True; it looks at the pods that exist, not at how many should (contract reconcile §15)."""
    if stored is not None and stored.status == Status.TRUE:
        return stored
    if pods and all(pod.running_and_not_unready for pod in pods):
        reason = Reason.ALL_PODS_RUNNING_AND_READY_FIRST_TIME
        return _condition(Type.PROVISIONED, Status.TRUE, reason, PROVISIONED_MESSAGE)
    return _condition(Type.PROVISIONED, Status.FALSE, Reason.RAY_CLUSTER_PODS_PROVISIONING, PROVISIONING_MESSAGE)


def _plain(kind: Type, true: bool) -> Condition:
    return _condition(kind, Status.TRUE if true else Status.FALSE, kind)
