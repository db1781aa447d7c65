"""Kubernetes' own gang scheduling: a Workload and a PodGroup that cannot be changed (contract objects §6)."""

from __future__ import annotations

from collections.abc import Iterator

from raybus.api.decision import Create, Delete, Intent, Json, Patch, Ref
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.batch.scheduler import Gang, Scheduler, members
from raybus.cluster_ctl.build.ownership import owner_reference
from raybus.cluster_ctl.children import Child
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView

API = "scheduling.k8s.io/v1alpha2"
_TEMPLATE = "cluster"
_PROTECTION = "scheduling.k8s.io/podgroup-protection"


def _active(cluster: RayCluster) -> bool:
    """Opted in, and of a size that does not change by itself."""
    asked = labels.is_true(cluster.metadata.labels.get(labels.GANG, ""))
    return asked and not cluster.spec.enable_in_tree_autoscaling


def _group_name(cluster: RayCluster) -> str:
    return f"{cluster.metadata.name}-{_TEMPLATE}"


def _stamp(pod: Json, cluster: RayCluster, group: str) -> None:
    if _active(cluster):
        pod["spec"]["schedulerName"] = "default-scheduler"
        pod["spec"]["schedulingGroup"] = {"podGroupName": _group_name(cluster)}


def _objects(view: ClusterView, knobs: ClusterKnobs) -> Gang:
    """Make both, or take both away first: when the cluster is not to have them, or when its size has changed."""
    cluster = view.cluster
    workload, group = _workload(cluster), _pod_group(cluster)
    found = {kind: view.children.get((kind, body["metadata"]["name"])) for kind, body in _bodies(workload, group)}
    outdated = any(
        child is not None and (child.deleting or not _active(cluster) or _size(child.spec) != members(cluster, False))
        for child in found.values()
    )
    if outdated:
        return Gang(Outcome(tuple(_removal(view, found["Workload"], found["PodGroup"]))), ready=False)
    if not _active(cluster):
        return Gang()
    missing = [body for kind, body in _bodies(workload, group) if found[kind] is None]
    creates = tuple(Create(ref=_ref(view, body["kind"], body["metadata"]["name"]), body=body) for body in missing[:1])
    return Gang(Outcome(creates), ready=not missing)


def _bodies(workload: Json, group: Json) -> tuple[tuple[str, Json], ...]:
    return ("Workload", workload), ("PodGroup", group)


def _removal(view: ClusterView, workload: Child | None, group: Child | None) -> Iterator[Intent]:
    """The PodGroup first, its protection included; then the Workload it was made from."""
    if group is not None:
        ref = _ref(view, "PodGroup", group.name)
        if not group.deleting:
            yield Delete(ref=ref, uid=group.uid)
        elif _PROTECTION in group.finalizers:
            path = f"/metadata/finalizers/{group.finalizers.index(_PROTECTION)}"
            operations: tuple[Json, ...] = (
                {"op": "test", "path": path, "value": _PROTECTION},
                {"op": "remove", "path": path},
            )
            yield Patch(ref=ref, uid=group.uid, resource_version=group.version, operations=operations)
    elif workload is not None and not workload.deleting:
        yield Delete(ref=_ref(view, "Workload", workload.name), uid=workload.uid)


def _ref(view: ClusterView, kind: str, name: str) -> Ref:
    return Ref(kind, view.ref.namespace, name)


def _size(spec: Json) -> int | None:
    """Members that a Workload or a PodGroup asks for."""
    holder = (spec.get("podGroupTemplates") or [spec])[0]
    size: int | None = ((holder.get("schedulingPolicy") or {}).get("gang") or {}).get("minCount")
    return size


def _workload(cluster: RayCluster) -> Json:
    meta = cluster.metadata
    spec = {
        "controllerRef": {"apiGroup": "ray.io", "kind": "RayCluster", "name": meta.name},
        "podGroupTemplates": [{"name": _TEMPLATE, "schedulingPolicy": _policy(cluster)}],
    }
    return {"apiVersion": API, "kind": "Workload", "metadata": _metadata(cluster, meta.name), "spec": spec}


def _pod_group(cluster: RayCluster) -> Json:
    template = {"workloadName": cluster.metadata.name, "podGroupTemplateName": _TEMPLATE}
    spec = {"podGroupTemplateRef": {"workload": template}, "schedulingPolicy": _policy(cluster)}
    return {"apiVersion": API, "kind": "PodGroup", "metadata": _metadata(cluster, _group_name(cluster)), "spec": spec}


def _policy(cluster: RayCluster) -> Json:
    return {"gang": {"minCount": members(cluster, elastic=False)}}


def _metadata(cluster: RayCluster, name: str) -> Json:
    return {
        "name": name,
        "namespace": cluster.metadata.namespace,
        "labels": {labels.CLUSTER: cluster.metadata.name},
        "ownerReferences": [owner_reference(cluster)],
    }


KUBERNETES = Scheduler(_objects, _stamp)
