"""Volcano: one PodGroup per cluster, always (contract objects §6)."""

from __future__ import annotations

from raybus.api.decision import Create, Json, Note, Patch, Ref, Why
from raybus.api.reasons import Reason
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels, quantity
from raybus.cluster_ctl.batch.scheduler import Gang, Scheduler, annotate, copy_label, members
from raybus.cluster_ctl.build.ownership import creator, owner_reference
from raybus.cluster_ctl.children import Child
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.resources import gang_resources
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView

KIND = "PodGroup.volcano"
_QUEUE = "volcano.sh/queue-name"
_MODE, _TIER = "volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier-allowed"


def group_name(cluster: RayCluster) -> str:
    """The PodGroup: that of the RayJob for which the cluster was made, or the cluster's own."""
    meta = cluster.metadata
    owner = meta.labels.get(labels.ORIGIN_NAME, meta.name) if creator(cluster) == "RayJob" else meta.name
    return f"ray-{owner}-pg"


def _stamp(pod: Json, cluster: RayCluster, group: str) -> None:
    pod["spec"]["schedulerName"] = "volcano"
    copy_label(pod, cluster, _QUEUE)
    copy_label(pod, cluster, labels.PRIORITY_CLASS)
    annotate(pod, **{"scheduling.k8s.io/group-name": group_name(cluster), "volcano.sh/task-spec": group})


def _objects(view: ClusterView, knobs: ClusterKnobs) -> Gang:
    cluster = view.cluster
    ref = Ref(KIND, view.ref.namespace, group_name(cluster))
    if creator(cluster) == "RayJob":
        return _of_rayjob(view, ref)
    if (tier := cluster.metadata.labels.get(_TIER)) and _MODE in cluster.metadata.labels and not tier.isdecimal():
        return _bad_tier(view, tier)
    body = _pod_group(cluster, ref)
    found = view.children.get((KIND, ref.name))
    if found is None:
        return Gang(Outcome((Create(ref=ref, body=body),)), ready=False)
    return Gang(Outcome(_updates(found, body["spec"], ref)))


def _of_rayjob(view: ClusterView, ref: Ref) -> Gang:
    """The RayJob makes the PodGroup; pods that name a missing one would wait without a word."""
    there = view.is_there(ref)
    text = f"Waiting for PodGroup {ref.name} of the RayJob."
    because = () if there else (Why(reason=Reason.CLUSTER_NOT_READY, text=text, about=ref),)
    return Gang(Outcome(because=because, needs=(ref,)), ready=bool(there))


def _bad_tier(view: ClusterView, tier: str) -> Gang:
    text = f"label {_TIER} of RayCluster {view.ref.namespace}/{view.ref.name} is no number: {tier!r}; no pod is created"
    note = Note(type="Warning", reason=Reason.INVALID_RAY_CLUSTER_SPEC, action="Validate", text=text)
    why = Why(reason=note.reason, text=text, about=view.ref, next_step="Correct the label.")
    return Gang(Outcome(because=(why,), warnings=(note,)), ready=False)


def _pod_group(cluster: RayCluster, ref: Ref) -> Json:
    own, least = cluster.metadata.labels, bool(cluster.spec.enable_in_tree_autoscaling)
    spec: Json = {"minMember": members(cluster), "minResources": gang_resources(cluster.spec, least)}
    for field, label in (("queue", _QUEUE), ("priorityClassName", labels.PRIORITY_CLASS)):
        if own.get(label):
            spec[field] = own[label]
    if own.get(_MODE):
        tier = {"highestTierAllowed": int(own[_TIER])} if own.get(_TIER) else {}
        spec["networkTopology"] = {"mode": own[_MODE], **tier}
    metadata: Json = {
        "name": ref.name,
        "namespace": ref.namespace,
        "annotations": dict(cluster.metadata.annotations),
        "ownerReferences": [owner_reference(cluster)],
    }
    api = "scheduling.volcano.sh/v1beta1"
    return {
        "apiVersion": api,
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
        "status": {"phase": "Pending"},
    }


def _updates(found: Child, wanted: Json, ref: Ref) -> tuple[Patch, ...]:
    """Only the size follows the cluster."""
    operations: list[Json] = []
    if found.spec.get("minMember") != wanted["minMember"]:
        operations.append({"op": "add", "path": "/spec/minMember", "value": wanted["minMember"]})
    if _amounts(found.spec.get("minResources") or {}) != _amounts(wanted["minResources"]):
        operations.append({"op": "add", "path": "/spec/minResources", "value": wanted["minResources"]})
    if not operations:
        return ()
    return (Patch(ref=ref, uid=found.uid, resource_version=found.version, operations=tuple(operations)),)


def _amounts(resources: Json) -> Json:
    return {name: quantity.parse(text).amount for name, text in resources.items()}


VOLCANO = Scheduler(_objects, _stamp)
