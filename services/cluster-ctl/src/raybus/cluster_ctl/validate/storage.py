"""Checks of embedded fault tolerance (contract objects §7.2 rules 12, 13)."""

from __future__ import annotations

from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import fault_tolerance as ft
from raybus.cluster_ctl.build.fault_tolerance import STORAGE_PATH, STORAGE_VOLUME
from raybus.cluster_ctl.validate.groups import containers, head_env

_ENV = ("RAY_gcs_storage", "RAY_gcs_storage_path")


def storage_needs_rocksdb(cluster: RayCluster) -> str | None:
    """Rule 13."""
    options = cluster.spec.gcs_fault_tolerance_options
    if options is not None and options.storage is not None and ft.backend(cluster) != ft.ROCKSDB:
        return "gcsFaultToleranceOptions.storage can only be set with backend rocksdb"
    return None


def rocksdb_without_redis(cluster: RayCluster) -> str | None:
    """Rule 12, first part."""
    options = cluster.spec.gcs_fault_tolerance_options
    if options is None or ft.backend(cluster) != ft.ROCKSDB:
        return None
    of_redis = {
        "redisAddress": options.redis_address,
        "redisUsername": options.redis_username is not None,
        "redisPassword": options.redis_password is not None,
        "externalStorageNamespace": options.external_storage_namespace,
    }
    wrong = [name for name, given in of_redis.items() if given]
    return f"gcsFaultToleranceOptions.{wrong[0]} cannot be set with backend rocksdb" if wrong else None


def claim_or_its_settings(cluster: RayCluster) -> str | None:
    """Rule 12, second part."""
    storage = ft.storage(cluster)
    own = {
        "size": storage.size is not None,
        "storageClassName": storage.storage_class_name is not None,
        "accessModes": bool(storage.access_modes),
    }
    wrong = [name for name, given in own.items() if given]
    if storage.claim_name and wrong:
        return f"gcsFaultToleranceOptions.storage: {', '.join(wrong)} cannot be set together with claimName"
    return None


def rocksdb_reserved(cluster: RayCluster) -> str | None:
    """Rule 12, third part: names and paths that are ours."""
    if ft.backend(cluster) != ft.ROCKSDB:
        return None
    template = cluster.spec.head_group_spec.template
    if taken := [name for name in _ENV if name in head_env(cluster)]:
        return f"{taken[0]} in the head's environment is reserved with backend rocksdb"
    for mount in containers(template)[0].get("volumeMounts") or ():
        if mount.get("name") == STORAGE_VOLUME or mount.get("mountPath") == STORAGE_PATH:
            return f"mounts named {STORAGE_VOLUME} or at {STORAGE_PATH} are reserved with backend rocksdb"
    if any(volume.get("name") == STORAGE_VOLUME for volume in (template.get("spec") or {}).get("volumes") or ()):
        return f"a volume named {STORAGE_VOLUME} in the head's template is reserved with backend rocksdb"
    return None
