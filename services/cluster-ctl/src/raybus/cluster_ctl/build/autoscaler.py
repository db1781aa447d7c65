"""The Ray autoscaler's container in the head pod (contract objects §2.10)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import AutoscalerOptions, RayCluster
from raybus.cluster_ctl.build.auth import add_auth_env
from raybus.cluster_ctl.build.command import shell
from raybus.cluster_ctl.build.env import Env
from raybus.cluster_ctl.build.tls import add_tls_env

NAME = "autoscaler"
V2_VARIABLE = "RAY_enable_autoscaler_v2"
_START = "ray kuberay-autoscaler --cluster-name $(RAY_CLUSTER_NAME) --cluster-namespace $(RAY_CLUSTER_NAMESPACE)"
_AMOUNTS = {"cpu": "500m", "memory": "512Mi"}


def is_autoscaling(cluster: RayCluster) -> bool:
    """Whether the Ray autoscaler sets the sizes of the groups."""
    return bool(cluster.spec.enable_in_tree_autoscaling)


def chosen_version(cluster: RayCluster) -> str:
    """`v1` or `v2` when autoscaling is on and a version is chosen, else ""."""
    options = cluster.spec.autoscaler_options
    return (options.version or "") if is_autoscaling(cluster) and options is not None else ""


def set_restart_policy(spec: Json, cluster: RayCluster) -> None:
    """Version 2 replaces pods, not containers: they must not be restarted (contract objects §2.11)."""
    if chosen_version(cluster) == "v2":
        spec["restartPolicy"] = "Never"


def add_version_env(env: Env, cluster: RayCluster) -> None:
    """What tells Ray in the head which version is used (§2.6 row 1)."""
    if version := chosen_version(cluster):
        env.always(V2_VARIABLE, "true" if version == "v2" else "false")


def autoscaler_container(cluster: RayCluster, ray_image: str, login: bool) -> Json:
    """The container, mounts apart from the user's still missing."""
    options = cluster.spec.autoscaler_options or AutoscalerOptions()
    container: Json = {
        "name": NAME,
        "image": options.image or ray_image,
        "imagePullPolicy": options.image_pull_policy or "IfNotPresent",
        "command": list(options.command) or shell(login),
        "args": list(options.args) or [_START],
        "env": _env(cluster, options),
        "resources": options.resources or {"requests": dict(_AMOUNTS), "limits": dict(_AMOUNTS)},
    }
    if options.env_from:
        container["envFrom"] = list(options.env_from)
    if options.security_context is not None:
        container["securityContext"] = options.security_context
    if options.volume_mounts:
        container["volumeMounts"] = list(options.volume_mounts)
    return container


def _env(cluster: RayCluster, options: AutoscalerOptions) -> list[Json]:
    env = Env(())
    env.field("RAY_CLUSTER_NAME", "metadata.labels['ray.io/cluster']")
    env.field("RAY_CLUSTER_NAMESPACE", "metadata.namespace")
    env.field("RAY_HEAD_POD_NAME", "metadata.name")
    env.always("KUBERAY_CRD_VER", "v1")
    env.always("KUBERAY_GEN_AUTOSCALER_START_CMD", _START)
    add_auth_env(env, cluster)
    add_tls_env(env, cluster)
    for entry in options.env:
        env.append(entry)
    return env.entries
