"""Pods that cannot die: on a node that is gone, or held by somebody's finalizer (ADR 0125)."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from raybus.api.decision import Patch, Why
from raybus.api.reasons import Reason
from raybus.api.times import Instant, parse_time
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.fault_tolerance import NOWHERE, backend
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.pods import Pod
from raybus.cluster_ctl.view import ClusterView

PATIENCE = 60.0
"""Seconds that a pod may outlive the end of its grace."""


def without_lost(view: ClusterView, now: Instant) -> ClusterView:
    """The view with such pods set aside: they take nobody's place, and their names are not used again.

    A head whose state lies in Redis or on a volume is never set aside: it may still write there, and a second head
    would write beside it.
    """
    lost = tuple(pod for pod in view.pods if (end := _end(view, pod)) is not None and end <= now)
    if not lost:
        return view
    left = tuple(pod for pod in view.pods if pod not in lost)
    return replace(view, pods=left, lost=lost, resting=view.resting.union(pod.name for pod in lost))


def decide_lost(view: ClusterView) -> Outcome:
    """Say which pods are lost, lead no Service to a lost head, and look again when the next pod's time is over.
    `view`: as `without_lost` gives it."""
    ends = (end for pod in view.pods if (end := _end(view, pod)) is not None)
    return Outcome(tuple(_unserve(view)), tuple(_explain(view)), wake_at=min(ends, default=None))


def _end(view: ClusterView, pod: Pod) -> Instant | None:
    """When a pod that is being deleted counts as lost; None for all others."""
    if not pod.due or (pod.node_type == labels.HEAD and backend(view.cluster) != NOWHERE):
        return None
    return Instant(parse_time(pod.due) + PATIENCE)


def _unserve(view: ClusterView) -> Iterator[Patch]:
    """The head Service finds its pod by this label."""
    path = "/metadata/labels/" + labels.IDENTIFIER.replace("/", "~1")
    for pod in view.lost:
        if pod.node_type == labels.HEAD and pod.served:
            operation = {"op": "remove", "path": path}
            ref = view.pod_ref(pod.name)
            yield Patch(ref=ref, uid=pod.uid, resource_version=pod.resource_version, operations=(operation,))


def _explain(view: ClusterView) -> Iterator[Why]:
    for pod in view.lost:
        text = f"The {pod.node_type} pod {pod.name} should have been gone since {pod.due} and is replaced."
        place = f"{pod.name} -n {view.ref.namespace}"
        step = f"If its node is gone: kubectl delete pod {place} --force; otherwise look at its finalizers."
        yield Why(reason=Reason.POD_LOST, text=text, about=view.pod_ref(pod.name), next_step=step)
