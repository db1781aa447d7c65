"""Environment of Ray containers and init containers, in the order of contract objects §2.6 and §3.1."""

from __future__ import annotations

from collections.abc import Iterable

from raybus.api.decision import Json

_ORIGIN_SERVICE = "RayService"


class Env:
    """An env list that grows: `always` may double a name (the last one wins in Kubernetes), `missing` never does."""

    def __init__(self, given: Iterable[Json]) -> None:
        self.entries = list(given)
        self._names = {entry["name"] for entry in self.entries}

    def always(self, name: str, value: str) -> None:
        """Append whatever is there already."""
        self.append({"name": name, "value": value})

    def field(self, name: str, path: str) -> None:
        """Append a reference to a field of the pod."""
        self.append({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}})

    def missing(self, name: str, value: str) -> None:
        """Append unless the name is there."""
        if name not in self._names:
            self.always(name, value)

    def append(self, entry: Json) -> None:
        """Append a whole entry."""
        self.entries.append(entry)
        self._names.add(entry["name"])

    def append_missing(self, entries: Iterable[Json]) -> None:
        """Append the whole entries whose names are not there."""
        for entry in entries:
            if entry["name"] not in self._names:
                self.append(entry)


def add_identity(env: Env, start: str, head_port: str) -> None:
    """Who the pod is, and how it was started (§2.6 rows 10-15)."""
    env.field("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']")
    env.field("RAY_CLUSTER_NAMESPACE", "metadata.namespace")
    env.field("RAY_CLOUD_INSTANCE_ID", "metadata.name")
    env.field("RAY_NODE_TYPE_NAME", "metadata.labels['ray.io/group']")
    env.always("KUBERAY_GEN_RAY_START_CMD", start)
    env.missing("RAY_PORT", head_port)


def add_serve_tuning(env: Env, origin: str) -> None:
    """Shorter time-outs for clusters of a RayService (§2.6 row 16)."""
    if origin == _ORIGIN_SERVICE:
        env.missing("RAY_timeout_ms_task_wait_for_death_info", "0")
        env.missing("RAY_gcs_server_request_timeout_seconds", "5")
        env.missing("RAY_SERVE_KV_TIMEOUT_S", "5")


def add_head_address(env: Env, fqdn: str) -> None:
    """Where the head is, for workers and init containers; `RAY_IP` is the Service's name (contract objects §9.13)."""
    env.always("FQ_RAY_IP", fqdn)
    env.always("RAY_IP", fqdn.split(".", 1)[0])
