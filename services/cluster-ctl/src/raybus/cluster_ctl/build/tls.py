"""Mutual TLS in pods: certificates of a Secret, and waiting until they name the pod (contract objects §5.5)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl.build.env import Env
from raybus.cluster_ctl.build.volumes import add_mount, add_volume

VOLUME, PATH = "ray-tls", "/etc/ray/tls"
VARIABLES = {
    "RAY_USE_TLS": "1",
    "RAY_TLS_SERVER_CERT": f"{PATH}/tls.crt",
    "RAY_TLS_SERVER_KEY": f"{PATH}/tls.key",
    "RAY_TLS_CA_CERT": f"{PATH}/ca.crt",
}
WAIT_NAME = "wait-for-tls-ip-san"
_MOUNT: Json = {"name": VOLUME, "mountPath": PATH, "readOnly": True}
_COPIED = ("image", "imagePullPolicy", "securityContext")
_AMOUNTS = {"cpu": "50m", "memory": "64Mi"}

_SCRIPT = f"""\
ip="${{POD_IP:-$(hostname -i | cut -d ' ' -f 1)}}"
if ! command -v openssl > /dev/null; then
  echo "openssl is missing in this image: it is needed to read the certificate in {PATH}" >&2
  exit 1
fi
pattern="IP Address:$(echo "$ip" | sed 's/[.]/[.]/g')([^0-9.]|$)"
while true; do
  text="$(openssl x509 -noout -text -in {PATH}/tls.crt)"
  echo "$text"
  if echo "$text" | grep -Eq "$pattern"; then break; fi
  echo "The certificate does not name $ip yet: waiting for cert-manager."
  sleep 5
done
echo "The certificate names $ip."
"""


def is_on(cluster: RayCluster) -> bool:
    """Whether Ray's connections are to use certificates."""
    options = cluster.spec.tls_options
    return options is not None and bool(options.enabled)


def secret_name(cluster: RayCluster, node_type: str) -> str:
    """The Secret with the certificate of the heads or the workers."""
    return f"ray-{node_type}-secret-{cluster.metadata.name}"


def add_tls_env(env: Env, cluster: RayCluster) -> None:
    """Variables of every container that speaks with Ray."""
    if is_on(cluster):
        for name, value in VARIABLES.items():
            env.missing(name, value)


def mount_certificates(spec: Json, container: Json, cluster: RayCluster, node_type: str) -> None:
    """The certificates of this kind of pod."""
    if is_on(cluster):
        add_volume(spec, VOLUME, {"secret": {"secretName": secret_name(cluster, node_type)}})
        add_mount(container, _MOUNT)


def put_wait_first(spec: Json, ray: Json, cluster: RayCluster, node_type: str) -> None:
    """The init container that waits until the certificate names the pod's address; `ray`: the Ray container."""
    if not is_on(cluster):
        return
    env = Env(())
    env.field("POD_IP", "status.podIP")
    waiting: Json = {
        "name": WAIT_NAME,
        **{key: ray[key] for key in _COPIED if ray.get(key)},
        "command": ["sh", "-c"],
        "args": [_SCRIPT],
        "env": env.entries,
        "resources": {"requests": dict(_AMOUNTS), "limits": dict(_AMOUNTS)},
    }
    mount_certificates(spec, waiting, cluster, node_type)
    spec["initContainers"] = [waiting, *(spec.get("initContainers") or ())]
