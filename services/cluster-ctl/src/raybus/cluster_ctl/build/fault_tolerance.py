"""What head and workers are told about the store of the GCS (contract objects §2.3, §2.6 rows 2-5, §3.1)."""

from __future__ import annotations

from collections.abc import Mapping

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.api.v1.cluster_options import RedisCredential
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build.env import Env
from raybus.cluster_ctl.build.volumes import add_mount, add_volume
from raybus.cluster_ctl.fault_tolerance import (
    NOWHERE,
    REDIS,
    ROCKSDB,
    backend,
    claim_name,
    storage,
    storage_namespace,
)

STORAGE_PATH, STORAGE_VOLUME = "/data/gcs", "gcs-storage"
_RECONNECT_SECONDS = "600"


def pod_annotations(cluster: RayCluster) -> dict[str, str]:
    """Annotations of the head pod."""
    found = {labels.FT_ENABLED: "true" if backend(cluster) != NOWHERE else "false"}
    if backend(cluster) == REDIS:
        found[labels.EXTERNAL_STORAGE_NAMESPACE] = storage_namespace(cluster)
    return found


def start_params(cluster: RayCluster) -> dict[str, str]:
    """Start parameters of the head: names of variables, so that no credential stands in a command line."""
    options = cluster.spec.gcs_fault_tolerance_options
    if options is None or backend(cluster) != REDIS:
        return {}
    given = {"redis-username": options.redis_username, "redis-password": options.redis_password}
    return {name: f"${_variable(name)}" for name, credential in given.items() if credential is not None}


def add_to_head(env: Env, cluster: RayCluster, given_params: Mapping[str, str]) -> None:
    """Environment of the head. `given_params`: start parameters as the user wrote them, where clusters that use the
    annotation have their password."""
    options = cluster.spec.gcs_fault_tolerance_options
    if backend(cluster) == ROCKSDB:
        env.missing("RAY_gcs_storage", ROCKSDB)
        env.missing("RAY_gcs_storage_path", STORAGE_PATH)
    if backend(cluster) != REDIS:
        return
    env.missing("RAY_external_storage_namespace", storage_namespace(cluster))
    if options is None:
        if "redis-password" in given_params:
            env.missing("REDIS_PASSWORD", given_params["redis-password"])
        return
    env.append(_entry("RAY_REDIS_ADDRESS", RedisCredential(value=options.redis_address)))
    for name, credential in (("redis-username", options.redis_username), ("redis-password", options.redis_password)):
        if credential is not None:
            env.append(_entry(_variable(name), credential))


def mount_storage(spec: Json, container: Json, cluster: RayCluster) -> None:
    """The volume of the head on which RocksDB lies (contract objects §5.7.2)."""
    if backend(cluster) != ROCKSDB:
        return
    add_volume(spec, STORAGE_VOLUME, {"persistentVolumeClaim": {"claimName": claim_name(cluster)}})
    path = storage(cluster).sub_path
    mount = {"name": STORAGE_VOLUME, "mountPath": STORAGE_PATH, **({"subPath": path} if path else {})}
    add_mount(container, mount)


def add_to_worker(env: Env, cluster: RayCluster) -> None:
    """Workers wait for a new head instead of ending with the old one."""
    if backend(cluster) != NOWHERE:
        env.missing("RAY_gcs_rpc_server_reconnect_timeout_s", _RECONNECT_SECONDS)


def _variable(param: str) -> str:
    return param.replace("-", "_").upper()


def _entry(name: str, credential: RedisCredential) -> Json:
    entry: Json = {"name": name}
    if credential.value:
        entry["value"] = credential.value
    if credential.value_from is not None:
        entry["valueFrom"] = credential.value_from
    return entry
