"""What a decision about a RayCluster comes to: a table of rows, the first whose guard holds wins (design §4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from raybus.api.decision import Why
from raybus.api.reasons import Reason
from raybus.api.v1 import ClusterConditionType
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.autoscaler_rbac import named_account
from raybus.cluster_ctl.conditions import holds
from raybus.cluster_ctl.deletion import holds_finalizer
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.upgrade import outdated_head
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


def leaves_something_behind(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """Deletion waits for our finalizer; like all deletion it comes before validation."""
    return being_deleted(view, knobs) if holds_finalizer(view) else None


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


def wrong_status(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """Somebody has written a status that no step of a suspension leads to (contract reconcile §4)."""
    stored = view.cluster.status.conditions
    if not (holds(stored, ClusterConditionType.SUSPENDING) and holds(stored, ClusterConditionType.SUSPENDED)):
        return None
    text = "conditions RayClusterSuspending and RayClusterSuspended are both True"
    step = "Set one of them to False: kubectl edit --subresource=status."
    return Why(reason=Reason.INVALID_RAY_CLUSTER_STATUS, text=text, about=view.ref, next_step=step)


def is_being_suspended(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """A suspension that has begun goes on to its end; without conditions there is only the spec to say so."""
    begun = holds(view.cluster.status.conditions, ClusterConditionType.SUSPENDING)
    if not (begun if knobs.status_conditions else view.cluster.spec.suspend):
        return None
    text = "The cluster is being suspended: its pods are deleted, everything else stays."
    return Why(reason=Reason.SUSPENSION_REQUESTED, text=text, about=view.ref)


def is_suspended(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """No pods until the status says that the suspension is over."""
    if not (knobs.status_conditions and holds(view.cluster.status.conditions, ClusterConditionType.SUSPENDED)):
        return None
    step = "Set spec.suspend to false to let it run; leaving the field out is not enough."
    return Why(reason=Reason.SUSPENDED, text="The cluster is suspended.", about=view.ref, next_step=step)


def asks_for_suspension(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """The status says first that a suspension begins, so that it cannot be half done."""
    text = "spec.suspend is true: the suspension begins."
    return Why(reason=Reason.SUSPENSION_REQUESTED, text=text, about=view.ref) if view.cluster.spec.suspend else None


def looks_for_account(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """Nothing is begun before it is known whether the autoscaler's account is there."""
    account = named_account(view)
    if account is None or view.heads or view.is_there(account) is not None:
        return None
    return Why(reason=Reason.STARTED, text=f"Looking whether {account} exists.", about=account)


def lacks_account(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """The user names a ServiceAccount for the autoscaler that is not there: a head without its rights would be of no
    use (contract objects §5.1). One that runs already is left in peace."""
    account = named_account(view)
    if account is None or view.heads or view.is_there(account) is not False:
        return None
    text = f"ServiceAccount {account.name}, which the head's template names, does not exist"
    step = f"kubectl create serviceaccount {account.name} -n {account.namespace}, or leave serviceAccountName out."
    return Why(reason=Reason.AUTOSCALER_SERVICE_ACCOUNT_NOT_FOUND, text=text, about=account, next_step=step)


def is_outdated(view: ClusterView, knobs: ClusterKnobs) -> Why | None:
    """The head was made from another spec, and the strategy asks for new pods then."""
    head = outdated_head(view, knobs)
    if head is None:
        return None
    text = f"Head pod {head.name} was made from an older spec: all pods are made anew (upgradeStrategy Recreate)."
    return Why(reason=Reason.RECREATING, text=text, about=view.pod_ref(head.name))


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


LEFT_ALONE, REFUSED, CLEANING_UP = "left-alone", "refused", "cleaning-up"
SUSPENDING, WITHOUT_PODS, RECREATING, RUNNING = "suspending", "without-pods", "recreating", "running"

TABLE: tuple[Row, ...] = (
    Row(managed_elsewhere, LEFT_ALONE),
    Row(leaves_something_behind, CLEANING_UP),
    Row(being_deleted, LEFT_ALONE),
    Row(wrong_metadata, REFUSED),
    Row(wrong_spec, REFUSED),
    Row(wrong_status, REFUSED),
    Row(is_being_suspended, SUSPENDING),
    Row(is_suspended, WITHOUT_PODS),
    Row(asks_for_suspension, WITHOUT_PODS),
    Row(looks_for_account, LEFT_ALONE),
    Row(lacks_account, REFUSED),
    Row(is_outdated, RECREATING),
    Row(runs, RUNNING),
)


def phase_of(view: ClusterView, knobs: ClusterKnobs) -> tuple[str, Why]:
    """The phase of the first row that holds, and why it does."""
    for row in TABLE:
        if (why := row.guard(view, knobs)) is not None:
            return row.phase, why
    raise AssertionError("the last row always holds")
