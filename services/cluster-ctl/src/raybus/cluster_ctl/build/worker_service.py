"""The headless Service by which hosts of one replica find each other (contract objects §4.4)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.build.ownership import owner_reference


def worker_service(cluster: RayCluster) -> Json:
    """The whole Service."""
    meta = cluster.metadata
    metadata: Json = {
        "name": names.worker_service(meta.name),
        "namespace": meta.namespace,
        "labels": {labels.WORKER_SERVICE: meta.name},
        "ownerReferences": [owner_reference(cluster)],
    }
    spec: Json = {
        "selector": {labels.CLUSTER: meta.name, labels.NODE_TYPE: labels.WORKER},
        "type": "ClusterIP",
        "clusterIP": "None",
        "publishNotReadyAddresses": True,
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
