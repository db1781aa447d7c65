"""The RayCluster of one attempt (contract rayjob §3.0)."""

import msgspec

from raybus.api.decision import Json
from raybus.api.v1 import API_VERSION
from raybus.job_ctl.build.common import owner
from raybus.job_ctl.gather import JobView
from raybus.job_ctl.labels import SUBMISSION_MODE, origin


def ray_cluster(view: JobView, name: str) -> Json:
    """The whole RayCluster: labels of the RayJob and three of ours, annotations and `rayClusterSpec` as they are."""
    labels = {
        **view.meta.labels,
        **origin(view.name),
        SUBMISSION_MODE: view.job.spec.submission_mode or "K8sJobMode",
    }
    metadata: Json = {
        "name": name,
        "namespace": view.namespace,
        "labels": labels,
        "ownerReferences": owner(view),
    }
    if view.meta.annotations:
        metadata["annotations"] = dict(view.meta.annotations)
    return {
        "apiVersion": API_VERSION,
        "kind": "RayCluster",
        "metadata": metadata,
        "spec": msgspec.json.decode(view.cluster_spec),
    }
