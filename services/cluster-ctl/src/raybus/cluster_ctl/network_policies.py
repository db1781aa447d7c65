"""Network isolation: policies follow the spec, and go with what asked for them (contract objects §5.4)."""

from __future__ import annotations

from collections.abc import Iterator

from raybus.api.decision import Create, Delete, Json, Note, Patch, Ref, Why
from raybus.api.reasons import Reason
from raybus.cluster_ctl.build.network_policy import GATE, network_policies
from raybus.cluster_ctl.children import Child
from raybus.cluster_ctl.keeping import Words, create_child, differing_parts, place_of, replace_parts
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView

KIND, REPORTER = "NetworkPolicy", "networkpolicy-controller"
_WORDS = Words(
    KIND,
    Reason.CREATED_NETWORK_POLICY,
    Reason.FAILED_TO_CREATE_NETWORK_POLICY,
    Reason.UPDATED_NETWORK_POLICY,
    Reason.FAILED_TO_UPDATE_NETWORK_POLICY,
    REPORTER,
)


def decide_network_policies(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """Make what is missing, set right what differs, delete what nothing asks for."""
    if GATE not in knobs.gates:
        return Outcome()
    config = view.cluster.spec.network_policy
    wanted = (
        {} if config is None else {body["metadata"]["name"]: body for body in network_policies(view.cluster, config)}
    )
    surplus = [child for child in view.children_of(KIND) if child.name not in wanted and not child.deleting]
    intents = (*_kept(view, wanted), *(_delete(view, child) for child in surplus))
    text = f"Network policies follow the spec: {', '.join(intent.ref.name for intent in intents)}."
    return Outcome(intents, (Why(reason=Reason.STARTED, text=text, about=view.ref),) if intents else ())


def _kept(view: ClusterView, wanted: dict[str, Json]) -> Iterator[Create | Patch]:
    for name, body in wanted.items():
        there = view.children.get((KIND, name))
        if there is None:
            yield create_child(body, _WORDS, taken=_collision(body))
        elif parts := differing_parts(there, body):
            yield replace_parts(there, body, parts, _WORDS)


def _collision(body: Json) -> Note:
    text = (
        f"NetworkPolicy {place_of(body)} already exists and is not owned by this RayCluster, network isolation will "
        "not be applied. Rename the existing NetworkPolicy or use a different RayCluster name to avoid the collision"
    )
    reason = Reason.NETWORK_POLICY_NAME_COLLISION
    return Note(type="Warning", reason=reason, action="Validate", text=text, reporter=REPORTER)


def _delete(view: ClusterView, child: Child) -> Delete:
    place = f"{view.ref.namespace}/{child.name}"
    done, failed = f"Deleted NetworkPolicy {place}", f"Failed to delete NetworkPolicy {place}"
    return Delete(
        ref=Ref(KIND, view.ref.namespace, child.name),
        uid=child.uid,
        done=Note(type="Normal", reason=Reason.DELETED_NETWORK_POLICY, action="Delete", text=done, reporter=REPORTER),
        failed=Note(
            type="Warning",
            reason=Reason.FAILED_TO_DELETE_NETWORK_POLICY,
            action="Delete",
            text=failed,
            reporter=REPORTER,
        ),
    )
