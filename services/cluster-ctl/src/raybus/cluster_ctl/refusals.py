"""What the API server refused of the present intents: the condition's marker, and the words for `explain`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from raybus.api.decision import CreatePods, Delete, Intent, Ref, Why
from raybus.api.kinds import BY_KIND
from raybus.api.messages import Refusal, fingerprint
from raybus.api.reasons import Reason
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.status import Trouble
from raybus.cluster_ctl.view import ClusterView

_FORBIDDEN, _NOT_FOUND = 403, 404
_NAME_TAKEN = "name-taken"
_REPLACEABLE = ("ServiceAccount", "Role", "RoleBinding", "Ingress")
_NEXT_STEPS = {
    Reason.QUOTA_REFUSED: "Raise the ResourceQuota or make the cluster smaller; it is tried again by itself.",
    Reason.FORBIDDEN: "Grant the applier this right, or see which admission policy refuses; it is tried again.",
    Reason.NAME_TAKEN: "Delete or rename the other object of that name; it is tried again by itself.",
    Reason.REFUSED_BY_API_SERVER: "Correct the pod template in the RayCluster's spec.",
}


def present(refusals: Sequence[Refusal], intents: Iterable[Intent]) -> list[tuple[Refusal, Intent]]:
    """Refusals of what is still wanted in the very same form."""
    if not refusals:
        return []
    wanted = {fingerprint(intent): intent for intent in intents}
    return [(refusal, wanted[refusal.intent]) for refusal in refusals if refusal.intent in wanted]


def under_way(view: ClusterView, intents: Sequence[Intent]) -> bool:
    """Whether any of the intents is not refused, so that its effect will be seen soon."""
    return len({refusal.intent for refusal, _ in present(view.refusals, intents)}) < len(intents)


def trouble(view: ClusterView, intents: Sequence[Intent]) -> Trouble:
    """How the present intents fare; deletes mean that a pod has to be replaced or removed first."""
    refused = present(view.refusals, intents)
    marked = [(refusal, marker) for refusal, intent in refused if (marker := _marker(view, intent)) is not None]
    others = [refusal for refusal, intent in refused if _marker(view, intent) is None]
    return Trouble(
        refusal=marked[0] if marked else None,
        any=bool(marked)
        or not all(map(_lives_without, others))
        or any(isinstance(i, Delete) and i.ref.kind == "Pod" for i in intents),
        warning="; ".join(f"{_name(refusal.ref)}: {refusal.message}" for refusal in others),
    )


def _lives_without(refusal: Refusal) -> bool:
    """Whether a cluster is whole without this child: a foreign object that does its part, or is in the way of an
    Ingress (contract reconcile §6); network policies never decide about readiness (contract reconcile §22)."""
    if refusal.ref.kind == "NetworkPolicy":
        return True
    return refusal.reason == _NAME_TAKEN and refusal.ref.kind in _REPLACEABLE


def _marker(view: ClusterView, intent: Intent) -> Reason | None:
    """The reason that condition ReplicaFailure gives (contract reconcile §15); None for children that are no pods."""
    if isinstance(intent, CreatePods):
        head = intent.template["metadata"]["labels"][labels.NODE_TYPE] == labels.HEAD
        return Reason.FAILED_CREATE_HEAD_POD if head else Reason.FAILED_CREATE_WORKER_POD
    if isinstance(intent, Delete) and intent.ref.kind == "Pod":
        if intent.failed is not None and intent.failed.reason == Reason.FAILED_TO_DELETE_POD_COLLECTION:
            return Reason.FAILED_DELETE_ALL_PODS
        head = any(pod.name == intent.ref.name for pod in view.heads)
        return Reason.FAILED_DELETE_HEAD_POD if head else Reason.FAILED_DELETE_WORKER_POD
    return None


def explain(view: ClusterView, intents: Sequence[Intent]) -> tuple[Why, ...]:
    """One sentence per refusal: the object, what the API server said, what to do."""
    return tuple(_why(refusal) for refusal, _ in present(view.refusals, intents))


def _why(refusal: Refusal) -> Why:
    reason = classify(refusal)
    text = f"The API server refuses to {refusal.verb} {_name(refusal.ref)}: {refusal.message}"
    return Why(reason=reason, text=text, about=refusal.ref, next_step=_next_step(refusal, reason))


def _next_step(refusal: Refusal, reason: Reason) -> str:
    kind = BY_KIND[refusal.ref.kind]
    if reason != Reason.REFUSED_BY_API_SERVER or refusal.ref.kind == "Pod":
        return _NEXT_STEPS[reason]
    if refusal.code == _NOT_FOUND:
        return f"Install what brings {kind.plural} of {kind.api_version}; it is tried again by itself."
    return f"Correct what the RayCluster's spec says of this {refusal.ref.kind}."


def _name(ref: Ref) -> str:
    return f"{ref.kind} {ref.name}" if ref.name else ref.kind


def classify(refusal: Refusal) -> Reason:
    """Quota, missing right, name taken, or anything else the API server does not accept."""
    if refusal.reason == _NAME_TAKEN:
        return Reason.NAME_TAKEN
    if "exceeded quota" in refusal.message:
        return Reason.QUOTA_REFUSED
    return Reason.FORBIDDEN if refusal.code == _FORBIDDEN else Reason.REFUSED_BY_API_SERVER
