"""The decision about one RayCluster: pure, complete, the same for every replica with the same view (design §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from raybus.api.decision import Decision, Delete, Note, Ref, Why
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.api.v1 import ClusterState
from raybus.cluster_ctl import labels, refusals
from raybus.cluster_ctl.auth_secret import decide_auth_secret
from raybus.cluster_ctl.autoscaler_rbac import decide_autoscaler_rbac, named_account
from raybus.cluster_ctl.batch.registry import decide_gang
from raybus.cluster_ctl.certificates import decide_certificates, warn_of_expiry, without_creates
from raybus.cluster_ctl.deletion import decide_deletion
from raybus.cluster_ctl.fault_tolerance import cleans_up
from raybus.cluster_ctl.gcs_storage import decide_gcs_storage
from raybus.cluster_ctl.groups import decide_group
from raybus.cluster_ctl.head import decide_head, head_must_stay_away
from raybus.cluster_ctl.head_service import decide_head_service
from raybus.cluster_ctl.ingress import decide_ingress
from raybus.cluster_ctl.lost import decide_lost, without_lost
from raybus.cluster_ctl.network_policies import decide_network_policies
from raybus.cluster_ctl.outcome import Outcome, join
from raybus.cluster_ctl.phases import CLEANING_UP, RECREATING, REFUSED, RUNNING, SUSPENDING, WITHOUT_PODS, phase_of
from raybus.cluster_ctl.replicas import decide_replicas, spans_hosts
from raybus.cluster_ctl.serve_service import decide_serve_service
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.spec_warnings import warn_of_spec
from raybus.cluster_ctl.status import next_status, settle
from raybus.cluster_ctl.teardown import delete_for_suspension, delete_for_upgrade, suspended_note
from raybus.cluster_ctl.upgrade import take_over_head
from raybus.cluster_ctl.view import ClusterView
from raybus.cluster_ctl.waiting import explain_waiting
from raybus.cluster_ctl.worker_service import decide_worker_service


def decide(view: ClusterView, now: Instant, knobs: ClusterKnobs) -> Decision:
    """What is to happen for this RayCluster now."""
    present = without_lost(view, now)
    phase, why = phase_of(present, knobs)
    if phase in PODS:
        return _run(present if phase in (RUNNING, RECREATING) else view, now, knobs, phase, why)
    if phase == CLEANING_UP:
        return decide_deletion(view, now, knobs)
    if phase == REFUSED:
        return _refuse(view, why, now)
    return Decision(needs=_account(view), because=(why,))


def _run(view: ClusterView, now: Instant, knobs: ClusterKnobs, phase: str, why: Why) -> Decision:
    """Children and status. A status that only counts progress is left out while children are being made or removed:
    their echo brings the next decision, and with it a status that is true for longer (ADR 0055)."""
    wanted = join((*(decide_child(view, knobs) for decide_child in CHILDREN), PODS[phase](view, now, knobs)))
    trouble = refusals.trouble(view, wanted.intents)
    warning = "; ".join(filter(None, (*(note.text for note in wanted.warnings), trouble.warning)))
    trouble = trouble._replace(warning=warning)
    status = next_status(view, trouble, now, knobs)
    ready_now = status.body.get("state") == ClusterState.READY != view.cluster.status.state
    because = (*wanted.because, *refusals.explain(view, wanted.intents), *explain_waiting(view))
    ready = Why(reason=Reason.CLUSTER_READY, text="The head and all wanted workers run and are ready.", about=view.ref)
    news = tuple(note for note in wanted.warnings if note.text not in view.cluster.status.reason)
    waits = status.progress and refusals.under_way(view, wanted.intents)
    return Decision(
        status=None if waits else status.body,
        finalizers=frozenset({labels.REDIS_FINALIZER}) if cleans_up(view.cluster, knobs) else None,
        intents=wanted.intents,
        needs=wanted.needs,
        wake_at=wanted.wake_at,
        notes=(*news, *wanted.notes, *suspended_note(view, status.body)),
        because=because or (ready if phase == RUNNING else why,),
        progress=status.progress,
        urgent=ready_now or any(isinstance(intent, Delete) for intent in wanted.intents),
    )


def _pods(view: ClusterView, now: Instant, knobs: ClusterKnobs) -> Outcome:
    if head_must_stay_away(view):
        text = "The head of this provisioned cluster is gone, and its annotation asks not to make another."
        return Outcome(because=(Why(reason=Reason.HEAD_POD_NOT_FOUND, text=text, about=view.ref),))
    gang = decide_gang(view, knobs)
    if not gang.ready:
        return gang.outcome
    groups = (
        decide_replicas(view, group, knobs) if spans_hosts(group, knobs) else decide_group(view, group, knobs)
        for group in view.cluster.spec.worker_group_specs
    )
    pods = join((gang.outcome, decide_lost(view), decide_head(view, now, knobs), take_over_head(view, knobs), *groups))
    return join((without_creates(view, pods), warn_of_expiry(view, now)))


CHILDREN: tuple[Callable[[ClusterView, ClusterKnobs], Outcome], ...] = (
    warn_of_spec,
    decide_autoscaler_rbac,
    decide_ingress,
    decide_auth_secret,
    decide_head_service,
    decide_worker_service,
    decide_serve_service,
    decide_gcs_storage,
    decide_network_policies,
    decide_certificates,
)
"""Everything but pods: each by itself, in the order of contract objects §0."""


PODS: Mapping[str, Callable[[ClusterView, Instant, ClusterKnobs], Outcome]] = {
    RUNNING: _pods,
    SUSPENDING: lambda view, now, knobs: delete_for_suspension(view),
    WITHOUT_PODS: lambda view, now, knobs: Outcome(),
    RECREATING: lambda view, now, knobs: delete_for_upgrade(view),
}
"""What becomes of the pods in each phase that has a status of its own; the other children are kept in all of them."""


_SENTENCES = {
    Reason.INVALID_RAY_CLUSTER_METADATA: "The RayCluster metadata is invalid",
    Reason.INVALID_RAY_CLUSTER_STATUS: "The RayCluster status is invalid",
    Reason.AUTOSCALER_SERVICE_ACCOUNT_NOT_FOUND: "Failed to reconcile RayCluster",
}


def _refuse(view: ClusterView, why: Why, now: Instant) -> Decision:
    """Say it once, in the status and in an Event; what exists stays as it is (ADR 0050).

    The Event goes with the status write: while the stored status says the same of the same generation, it was sent.
    """
    stored, generation = view.cluster.status, view.cluster.metadata.generation
    told = (stored.observed_generation, stored.reason) == (generation, why.text)
    status = settle(stored, replace(stored, reason=why.text, observed_generation=generation), now)
    sentence = _SENTENCES.get(why.reason, "The RayCluster spec is invalid")
    text = f"{sentence} {view.ref.namespace}/{view.ref.name}: {why.text}"
    note = Note(type="Warning", reason=why.reason, action="Validate", text=text)
    return Decision(status=status.body, needs=_account(view), notes=() if told else (note,), because=(why,))


def _account(view: ClusterView) -> tuple[Ref, ...]:
    """What has to be known before anything is begun."""
    account = named_account(view)
    return () if account is None else (account,)
