"""The head pod: exactly one, replaced when it has failed (contract reconcile §10)."""

from __future__ import annotations

from raybus.api.decision import CreatePods, PodSlot, Why
from raybus.api.reasons import Reason
from raybus.api.times import Instant, format_time
from raybus.api.v1 import ClusterConditionType
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.backoff import replace_at
from raybus.cluster_ctl.batch.registry import stamped
from raybus.cluster_ctl.build.head_pod import head_pod
from raybus.cluster_ctl.build.pod import template_name
from raybus.cluster_ctl.conditions import holds
from raybus.cluster_ctl.groups import taken_names
from raybus.cluster_ctl.health import failure
from raybus.cluster_ctl.outcome import Outcome, created, delete_pod, not_created
from raybus.cluster_ctl.pods import Pod
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView


def head_must_stay_away(view: ClusterView) -> bool:
    """The head is gone, and this cluster wants neither a new one nor new workers once it was provisioned: a RayJob
    whose submitter lived in the head pod asks for that by annotation (contract reconcile §10.2)."""
    meta = view.cluster.metadata
    provisioned = holds(view.cluster.status.conditions, ClusterConditionType.PROVISIONED)
    return not view.heads and provisioned and meta.annotations.get(labels.NO_HEAD_RESTART) == "true"


def decide_head(view: ClusterView, now: Instant, knobs: ClusterKnobs) -> Outcome:
    """Create the head, replace it, or delete the worse of two (ADR 0054).

    A head that is on its way out counts as present: two heads would fight over the Service that workers follow. One
    that fails again and again right after its start is left for a while (ADR 0126).
    """
    if not view.heads:
        return _create(view, knobs)
    keeper = max(view.heads, key=_worth)
    due = replace_at(view, keeper, now) if failure(keeper) and not keeper.deleting else now
    if due > now and len(view.heads) == 1:
        return _back_off(view, keeper, due)
    deletes, because = [], []
    for pod in view.heads:
        why = failure(pod) or (None if pod is keeper else f"the cluster already has head {keeper.name}")
        if pod.deleting or why is None:
            continue
        text = f"{why}; restartPolicy {pod.restart_policy}"
        deletes.append(delete_pod(view, pod, Reason.DELETED_HEAD_POD, Reason.FAILED_TO_DELETE_HEAD_POD, text))
        because.append(
            Why(reason=Reason.POD_FAILED, text=f"Deleting head pod {pod.name}: {why}.", about=view.pod_ref(pod.name))
        )
    return Outcome(tuple(deletes), tuple(because))


def _back_off(view: ClusterView, head: Pod, due: Instant) -> Outcome:
    text = f"Head pod {head.name} failed right after its start, like those before it: {failure(head)}."
    step = f"kubectl logs {head.name} -n {view.ref.namespace} shows why; the next one is made at {format_time(due)}."
    why = Why(reason=Reason.BACKING_OFF, text=text, about=view.pod_ref(head.name), next_step=step)
    return Outcome(because=(why,), wake_at=due)


def head_of(view: ClusterView) -> Pod | None:
    """The head that the status speaks of."""
    return max(view.heads, key=_worth, default=None)


def _worth(pod: Pod) -> tuple[bool, bool, bool, str]:
    """Which of several heads to keep: a usable one, then the first in name order."""
    return not pod.deleting and failure(pod) is None, pod.running_and_ready, pod.running, pod.name


def _create(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    meta = view.cluster.metadata
    name = _name(view, knobs)
    where = f"{meta.namespace}/{name}"
    create = CreatePods(
        namespace=meta.namespace,
        template=stamped(head_pod(view.cluster, knobs), view.cluster, labels.HEAD_GROUP, knobs),
        slots=(PodSlot(name=name),),
        done=created(Reason.CREATED_HEAD_POD, f"Created head Pod {where}"),
        failed=not_created(Reason.FAILED_TO_CREATE_HEAD_POD, f"Failed to create head Pod {where}"),
    )
    why = Why(reason=Reason.STARTED, text=f"The cluster has no head pod: creating {name}.", about=view.ref)
    return Outcome((create,), (why,))


def _name(view: ClusterView, knobs: ClusterKnobs) -> str:
    """The user's name, the fixed one where the operator's settings ask for it, or the first free slot's."""
    meta = view.cluster.metadata
    if own := template_name(view.cluster.spec.head_group_spec.template):
        return own
    prefix = names.head_prefix(meta.name)
    if knobs.deterministic_head_name:
        return prefix.removesuffix("-")
    return next(names.pod_names(prefix, meta.uid, labels.HEAD_GROUP, taken_names(view)))
