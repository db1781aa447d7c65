"""The claim of the volume on which the head keeps the state of its GCS (contract objects §5.7.2)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.build.ownership import owner_reference
from raybus.cluster_ctl.fault_tolerance import storage

DEFAULT_SIZE, DEFAULT_MODES = "1Gi", ("ReadWriteOnce",)


def retained(cluster: RayCluster) -> bool:
    """Whether the claim outlives the cluster."""
    return storage(cluster).deletion_policy == "Retain"


def gcs_claim_metadata(cluster: RayCluster) -> Json:
    """Name, label and owner."""
    owners = {} if retained(cluster) else {"ownerReferences": [owner_reference(cluster)]}
    meta = cluster.metadata
    return {
        "name": names.gcs_claim(meta.name),
        "namespace": meta.namespace,
        "labels": {labels.CLUSTER: meta.name},
        **owners,
    }


def gcs_claim(cluster: RayCluster) -> Json:
    """The whole PersistentVolumeClaim."""
    wanted = storage(cluster)
    spec: Json = {
        "accessModes": list(wanted.access_modes or DEFAULT_MODES),
        "resources": {"requests": {"storage": str(wanted.size or DEFAULT_SIZE)}},
    }
    if wanted.storage_class_name is not None:
        spec["storageClassName"] = wanted.storage_class_name
    meta = gcs_claim_metadata(cluster)
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}
