"""Checks of the history server's collector (contract objects §7.2 rule 20)."""

from __future__ import annotations

from collections.abc import Mapping

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl.build.history import NAME
from raybus.cluster_ctl.validate.groups import containers

_RESERVED = (
    "POD_IP",
    "FQ_RAY_IP",
    "RAY_CLUSTER_NAME",
    "RAY_CLUSTER_NAMESPACE",
    "RAY_ROLE",
    "OWNER_KIND",
    "OWNER_NAME",
    "EVENTS_PORT",
)
_NEEDS: Mapping[str, tuple[str, ...]] = {
    "GCS": ("GCS_BUCKET",),
    "S3": ("S3_REGION",),
    "ALIYUNOSS": ("OSS_BUCKET", "OSS_ENDPOINT", "OSS_REGION"),
}
"""Backend -> variables that it cannot do without; other backends are taken as they are."""
_AZURE, _AZURE_MODE = "AZUREBLOB", "AZURE_STORAGE_AUTH_MODE"
_AZURE_TEXT, _AZURE_URL = "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_ACCOUNT_URL"
_WHERE = "historyServerOptions.collectorOptions"


def history_server(cluster: RayCluster) -> str | None:
    """Rule 20."""
    options = cluster.spec.history_server_options
    if options is None:
        return None
    collector = options.collector_options
    if collector is None:
        return f"{_WHERE} must be set when historyServerOptions is"
    if not collector.image:
        return f"{_WHERE}.image must be set"
    env = {entry["name"]: entry for entry in collector.env}
    for name in _RESERVED:
        if name in env:
            return f"{_WHERE}.env must not contain {name}"
    return _storage(env) or _clash(cluster)


def _storage(env: Mapping[str, Json]) -> str | None:
    """Where logs and events are kept."""
    backend: str = env.get("STORAGE_BACKEND", {}).get("value") or ""
    if not backend:
        return f"{_WHERE}.env must set STORAGE_BACKEND to a literal value"
    if backend.upper() == _AZURE:
        return _azure(env)
    missing = [name for name in _NEEDS.get(backend.upper(), ()) if not _is_set(env, name)]
    return f"{_WHERE}.env must set {missing[0]} for STORAGE_BACKEND {backend}" if missing else None


def _azure(env: Mapping[str, Json]) -> str | None:
    mode = env.get(_AZURE_MODE, {}).get("value") or ""
    wanted = {
        "connection_string": (_AZURE_TEXT,),
        "workload_identity": (_AZURE_URL,),
        "default": (_AZURE_URL,),
    }.get(mode, (_AZURE_TEXT, _AZURE_URL))
    if any(_is_set(env, name) for name in wanted):
        return None
    return f"{_WHERE}.env must set {' or '.join(wanted)} for STORAGE_BACKEND {_AZURE}"


def _is_set(env: Mapping[str, Json], name: str) -> bool:
    entry = env.get(name, {})
    return bool(entry.get("value") or entry.get("valueFrom"))


def _clash(cluster: RayCluster) -> str | None:
    groups = cluster.spec.worker_group_specs
    for template in (cluster.spec.head_group_spec.template, *(group.template for group in groups)):
        if any(container.get("name") == NAME for container in containers(template)):
            return f"no container may be called {NAME} when historyServerOptions is set"
    return None
