"""Where a cluster keeps the state of its GCS, as options or the older annotations say (contract objects §1.6, §5.7)."""

from __future__ import annotations

from raybus.api.v1 import RayCluster
from raybus.api.v1.cluster_options import GcsEmbeddedStorage
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.settings import ClusterKnobs

NOWHERE, REDIS, ROCKSDB = "", "redis", "rocksdb"
_DELETION_TIMEOUT = 300


def backend(cluster: RayCluster) -> str:
    """`NOWHERE` without fault tolerance; options that name no backend mean Redis, and so does the annotation."""
    options = cluster.spec.gcs_fault_tolerance_options
    if options is not None:
        return options.backend or REDIS
    return REDIS if labels.is_true(cluster.metadata.annotations.get(labels.FT_ENABLED, "")) else NOWHERE


def storage_namespace(cluster: RayCluster) -> str:
    """What keeps this cluster's keys in Redis apart from those of others."""
    options = cluster.spec.gcs_fault_tolerance_options
    if options is not None and options.external_storage_namespace:
        return options.external_storage_namespace
    return cluster.metadata.annotations.get(labels.EXTERNAL_STORAGE_NAMESPACE, cluster.metadata.uid)


def storage(cluster: RayCluster) -> GcsEmbeddedStorage:
    """The volume that RocksDB lies on."""
    options = cluster.spec.gcs_fault_tolerance_options
    return options.storage if options is not None and options.storage is not None else GcsEmbeddedStorage()


def claim_name(cluster: RayCluster) -> str:
    """The claim of that volume: the user's, or the one that is made for the cluster."""
    return storage(cluster).claim_name or names.gcs_claim(cluster.metadata.name)


def cleans_up(cluster: RayCluster, knobs: ClusterKnobs) -> bool:
    """Whether Redis has to be emptied when the cluster is deleted, which takes a finalizer."""
    return knobs.redis_cleanup and backend(cluster) == REDIS


def deletion_timeout(cluster: RayCluster) -> int:
    """Seconds after its deletion at which a cluster goes even if Redis could not be emptied."""
    text = cluster.metadata.annotations.get(labels.FT_DELETION_TIMEOUT, "")
    return int(text) if text.isdecimal() and int(text) > 0 else _DELETION_TIMEOUT
