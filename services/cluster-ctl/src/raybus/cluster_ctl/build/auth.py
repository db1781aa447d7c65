"""Token authentication: the Secret that is made, and what containers need (contract objects §5.6, §2.6 row 6)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import names
from raybus.cluster_ctl.build.env import Env
from raybus.cluster_ctl.build.ownership import child_metadata
from raybus.cluster_ctl.build.volumes import add_mount, add_volume

KEY = "auth_token"
_VOLUME = "ray-token"
_MOUNT: Json = {"name": _VOLUME, "mountPath": "/var/run/secrets/ray.io/serviceaccount", "readOnly": True}
_TOKEN_OF_POD: Json = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}


def is_on(cluster: RayCluster) -> bool:
    """Whether pods are to ask for tokens: only the very word `token` says so (contract objects §9.19)."""
    options = cluster.spec.auth_options
    return options is not None and options.mode == "token"


def by_kubernetes(cluster: RayCluster) -> bool:
    """Whether tokens are those of Kubernetes' service accounts."""
    options = cluster.spec.auth_options
    return options is not None and bool(options.enable_k8s_token_auth)


def secret_is_ours(cluster: RayCluster) -> bool:
    """Whether a Secret is to be made: the user names none and does not say `disabled`."""
    options = cluster.spec.auth_options
    return options is not None and options.mode != "disabled" and not by_kubernetes(cluster) and not options.secret_name


def secret_name(cluster: RayCluster) -> str:
    """The Secret that holds the token."""
    options = cluster.spec.auth_options
    own = options.secret_name if options is not None else None
    return own or names.short_name(cluster.metadata.name)


def auth_secret(cluster: RayCluster) -> Json:
    """The Secret without its value."""
    metadata = child_metadata(cluster, names.short_name(cluster.metadata.name), {})
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


def add_auth_env(env: Env, cluster: RayCluster) -> None:
    """Variables of every container that speaks with Ray."""
    if not is_on(cluster):
        return
    env.missing("RAY_AUTH_MODE", "token")
    if by_kubernetes(cluster):
        env.missing("RAY_ENABLE_K8S_TOKEN_AUTH", "true")
        return
    source = {"secretKeyRef": {"name": secret_name(cluster), "key": KEY}}
    env.append_missing([{"name": "RAY_AUTH_TOKEN", "valueFrom": source}])


def mount_token(spec: Json, container: Json, cluster: RayCluster) -> None:
    """The pod's own token, where Kubernetes checks tokens."""
    if is_on(cluster) and by_kubernetes(cluster):
        add_volume(spec, _VOLUME, _TOKEN_OF_POD)
        add_mount(container, _MOUNT, by_path=False)
