"""The Service in front of Ray Serve in a plain RayCluster (contract objects §4.3)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build.ownership import owner_reference
from raybus.cluster_ctl.build.ports import serve_ports


def serve_service(cluster: RayCluster) -> Json:
    """The whole Service; it leads to every pod of the cluster, whose proxies answer alike."""
    name, kind = cluster.metadata.name, cluster.spec.head_group_spec.service_type
    metadata: Json = {
        "name": f"{name}-serve-svc",
        "namespace": cluster.metadata.namespace,
        "labels": {labels.ORIGIN_NAME: name, labels.ORIGIN_KIND: "RayCluster", labels.SERVE: f"{name}-serve"},
        "ownerReferences": [owner_reference(cluster)],
    }
    ports = [{"name": port, "port": number} for port, number in sorted(serve_ports(cluster).items())]
    spec: Json = {"selector": {labels.CLUSTER: name}, "ports": ports}
    if kind:
        spec["type"] = kind
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}
