"""What a decision about a RayCluster comes to: a table of rows, the first whose guard holds wins (design §4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from raybus.api.decision import Why
from raybus.api.reasons import Reason
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.unsupported import unsupported_fields
from raybus.cluster_ctl.validate import invalid_metadata, invalid_spec
from raybus.cluster_ctl.view import ClusterView

Guard = Callable[[ClusterView, ClusterKnobs], Why | None]


def managed_elsewhere(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """Another controller is named (contract reconcile §3): nothing at all is touched."""
    manager = view.cluster.spec.managed_by
    if manager in (None, labels.OUR_MANAGER):
        return None
    text = f"spec.managedBy names {manager or 'nobody'}: this cluster is left to it."
    return Why(reason=Reason.MANAGED_ELSEWHERE, text=text, about=view.ref)


def being_deleted(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """Deletion comes before validation, so that nothing invalid can hold it up (design §4)."""
    if view.cluster.metadata.deletion_timestamp is None:
        return None
    text = "The RayCluster is being deleted: Kubernetes removes its pods and Services with it."
    step = "If it stays, look for finalizers of others: kubectl get -o yaml shows them."
    return Why(reason=Reason.DELETION_REQUESTED, text=text, about=view.ref, next_step=step)


def wrong_metadata(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """The name cannot be used."""
    problem = invalid_metadata(view.cluster)
    return None if problem is None else _correct(view, Reason.INVALID_RAY_CLUSTER_METADATA, problem)


def wrong_spec(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """The spec contradicts itself or the contract."""
    problem = invalid_spec(view.cluster, knobs.gates)
    return None if problem is None else _correct(view, Reason.INVALID_RAY_CLUSTER_SPEC, problem)


def not_supported(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """The spec asks for what Raybus does not do yet."""
    fields = ", ".join(unsupported_fields(view.cluster))
    return _correct(view, Reason.NOT_SUPPORTED, f"Raybus does not support yet: {fields}") if fields else None


def runs(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """Everything else."""
    return Why(reason=Reason.STARTED, text="The cluster is to run.", about=view.ref)


def _correct(view: ClusterView, reason: Reason, problem: str) -> Why:
    step = "Correct the RayCluster; until then nothing is created or changed."
    return Why(reason=reason, text=problem, about=view.ref, next_step=step)


class Row(NamedTuple):
    """`phase`: what the decision then is."""

    guard: Guard
    phase: str


LEFT_ALONE, REFUSED, RUNNING = "left-alone", "refused", "running"

TABLE: tuple[Row, ...] = (
    Row(managed_elsewhere, LEFT_ALONE),
    Row(being_deleted, LEFT_ALONE),
    Row(wrong_metadata, REFUSED),
    Row(wrong_spec, REFUSED),
    Row(not_supported, REFUSED),
    Row(runs, RUNNING),
)


def phase_of(view: ClusterView, knobs: ClusterKnobs) -> tuple[str, Why]:
    """The phase of the first row that holds, and why it does."""
    for row in TABLE:
        if (why := row.guard(view, knobs)) is not None:
            return row.phase, why
    raise AssertionError("the last row always holds")
