"""Volumes that are added to pods (contract objects §2.8)."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from raybus.api.decision import Json

SHARED_MEMORY_PATH = "/dev/shm"
_LOGS: Json = {"name": "ray-logs", "mountPath": "/tmp/ray"}


def add_volume(spec: Json, name: str, source: Json) -> None:
    """Add a volume unless the pod has one of that name."""
    volumes = spec.setdefault("volumes", [])
    if all(volume.get("name") != name for volume in volumes):
        volumes.append({"name": name, **copy.deepcopy(source)})


def add_mount(container: Json, mount: Json, by_path: bool = True) -> None:
    """Add a mount unless the container mounts that volume already, or (`by_path`) something at that path."""
    mounts = container.get("volumeMounts") or []
    taken = any(
        m.get("name") == mount["name"] or (by_path and m.get("mountPath") == mount["mountPath"]) for m in mounts
    )
    if not taken:
        container["volumeMounts"] = [*mounts, dict(mount)]


def add_logs(spec: Json, container: Json) -> None:
    """Ray's logs, shared by the containers that read them."""
    mounts = container.get("volumeMounts") or []
    if all(mount.get("mountPath") != _LOGS["mountPath"] for mount in mounts):
        add_volume(spec, _LOGS["name"], {"emptyDir": {}})
        container["volumeMounts"] = [*mounts, dict(_LOGS)]


def add_shared_memory(spec: Json, container: Json, params: Mapping[str, str]) -> None:
    """Memory-backed /dev/shm of the size of the container's memory, unless the user placed the store elsewhere."""
    mounts = container.get("volumeMounts") or []
    if "plasma-directory" in params or any(mount.get("mountPath") == SHARED_MEMORY_PATH for mount in mounts):
        return
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    source: Json = {"medium": "Memory"}
    size = limits.get("memory", requests.get("memory"))
    if size is not None:
        source["sizeLimit"] = size
    add_volume(spec, "shared-mem", {"emptyDir": source})
    container["volumeMounts"] = [*mounts, {"name": "shared-mem", "mountPath": SHARED_MEMORY_PATH}]
