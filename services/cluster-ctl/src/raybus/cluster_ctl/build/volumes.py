"""Volumes that are added to the Ray container (contract objects §2.8)."""

from __future__ import annotations

from collections.abc import Mapping

from raybus.api.decision import Json

SHARED_MEMORY_PATH = "/dev/shm"


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
    volumes = spec.setdefault("volumes", [])
    if all(volume.get("name") != "shared-mem" for volume in volumes):
        volumes.append({"name": "shared-mem", "emptyDir": source})
    container["volumeMounts"] = [*mounts, {"name": "shared-mem", "mountPath": SHARED_MEMORY_PATH}]
