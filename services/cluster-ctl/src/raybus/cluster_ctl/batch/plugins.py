"""The scheduler plugins of Kubernetes' scheduling group: a PodGroup that is made once (contract objects §6)."""

from __future__ import annotations

from raybus.api.decision import Create, Json, Ref
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.batch.scheduler import Gang, Scheduler, members, wants_gang
from raybus.cluster_ctl.build.ownership import owner_reference
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.resources import gang_resources
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView

KIND = "PodGroup.scheduler-plugins"


def _stamp(pod: Json, cluster: RayCluster, group: str) -> None:
    pod["spec"]["schedulerName"] = "scheduler-plugins-scheduler"
    if wants_gang(cluster):
        pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] = cluster.metadata.name


def _objects(view: ClusterView, knobs: ClusterKnobs) -> Gang:
    """A PodGroup of that name counts whoever made it; it never follows the cluster (contract objects §9.25)."""
    ref = Ref(KIND, view.ref.namespace, view.ref.name)
    if not wants_gang(view.cluster) or (KIND, ref.name) in view.children:
        return Gang()
    there = view.is_there(ref)
    create = (Create(ref=ref, body=_pod_group(view.cluster)),) if there is False else ()
    return Gang(Outcome(create, needs=(ref,)), ready=bool(there))


def _pod_group(cluster: RayCluster) -> Json:
    meta = cluster.metadata
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": meta.name,
            "namespace": meta.namespace,
            "labels": {labels.CLUSTER: meta.name},
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": {
            "minMember": members(cluster, elastic=False),
            "minResources": gang_resources(cluster.spec, least=False),
        },
    }


SCHEDULER_PLUGINS = Scheduler(_objects, _stamp)
