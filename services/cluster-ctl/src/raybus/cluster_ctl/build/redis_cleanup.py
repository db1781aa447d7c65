"""The Job that empties Redis behind a deleted cluster: a head pod that runs one script (contract objects §5.7.3)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.build.command import shell
from raybus.cluster_ctl.build.head_pod import head_pod
from raybus.cluster_ctl.build.ownership import owner_reference
from raybus.cluster_ctl.settings import ClusterKnobs

DEADLINE_SECONDS = 300
_AMOUNTS = {"cpu": "200m", "memory": "256Mi"}
_PATIENCE = {"RAY_redis_db_connect_retries": "120", "RAY_redis_db_connect_wait_milliseconds": "500"}
_STAMPS = (labels.RECREATE_HASH, labels.OPERATOR_VERSION)
_TLS_WAIT = "wait-for-tls-ip-san"

_SCRIPT = """\
echo "Removing the state of a deleted Ray cluster from Redis. About GCS fault tolerance: \
https://docs.ray.io/en/latest/cluster/kubernetes/user-guides/kuberay-gcs-ft.html"
exec python -c '
import os, sys
from urllib.parse import urlparse
from ray._private.gcs_utils import cleanup_redis_storage

address = os.environ["RAY_REDIS_ADDRESS"].split(",")[0]
url = urlparse(address if "://" in address else "redis://" + address)
options = {
    "host": url.hostname,
    "port": url.port or 6379,
    "password": os.environ.get("REDIS_PASSWORD", url.password or ""),
    "use_ssl": url.scheme == "rediss",
    "storage_namespace": os.environ["RAY_external_storage_namespace"],
}
USERNAMEsys.exit(0 if cleanup_redis_storage(**options) else 1)
'
"""
_USERNAME = 'options["username"] = os.environ.get("REDIS_USERNAME", url.username or "")\n'
"""Only where a name is given: older versions of Ray do not take the argument."""


def redis_cleanup_job(cluster: RayCluster, knobs: ClusterKnobs) -> Json:
    """The whole Job."""
    pod = head_pod(cluster, knobs)
    meta, spec = pod["metadata"], pod["spec"]
    meta["labels"][labels.NODE_TYPE] = labels.CLEANUP
    meta["annotations"] = {key: value for key, value in meta["annotations"].items() if key not in _STAMPS}
    spec["restartPolicy"] = "Never"
    spec["containers"] = [_container(spec["containers"][0], knobs)]
    if init := [container for container in spec.pop("initContainers", ()) if container["name"] != _TLS_WAIT]:
        spec["initContainers"] = init
    own = {labels.CREATED_BY: labels.CREATOR, labels.CLUSTER: cluster.metadata.name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": names.cleanup_job(cluster.metadata.name),
            "namespace": cluster.metadata.namespace,
            "labels": {**meta["labels"], **own},
            "annotations": dict(meta["annotations"]),
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": DEADLINE_SECONDS,
            "template": {"metadata": meta, "spec": spec},
        },
    }


def _container(ray: Json, knobs: ClusterKnobs) -> Json:
    kept = {key: value for key, value in ray.items() if key not in ("livenessProbe", "readinessProbe")}
    named = any(entry["name"] == "REDIS_USERNAME" for entry in ray["env"])
    return kept | {
        "command": shell(knobs.login_shell),
        "args": [_SCRIPT.replace("USERNAME", _USERNAME if named else "", 1)],
        "env": [*ray["env"], *({"name": name, "value": value} for name, value in _PATIENCE.items())],
        "resources": {"requests": dict(_AMOUNTS), "limits": dict(_AMOUNTS)},
    }
