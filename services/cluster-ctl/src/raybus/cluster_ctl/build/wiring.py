"""What a pod gets besides its Ray container: sidecars, and the mounts that several containers share.

Head and workers differ only in which of these they have (contract objects §2.2, §2.8, §5.5, §5.6, §5.8).
"""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build import wait_gcs_ready
from raybus.cluster_ctl.build.auth import add_auth_env, mount_token
from raybus.cluster_ctl.build.autoscaler import autoscaler_container, is_autoscaling
from raybus.cluster_ctl.build.env import Env
from raybus.cluster_ctl.build.history import collector_container, collector_options
from raybus.cluster_ctl.build.tls import add_tls_env, mount_certificates
from raybus.cluster_ctl.build.volumes import add_logs


def mount_credentials(spec: Json, cluster: RayCluster, node_type: str) -> None:
    """Token and certificates for the Ray container, and for whichever init container bears the name of the one that
    waits for the GCS (contract objects §3.2)."""
    waiting = [init for init in spec.get("initContainers") or () if init["name"] == wait_gcs_ready.NAME]
    for container in waiting:
        env = Env(container.get("env") or ())
        add_auth_env(env, cluster)
        add_tls_env(env, cluster)
        if env.entries:
            container["env"] = env.entries
    for container in (spec["containers"][0], *waiting):
        mount_token(spec, container, cluster)
        mount_certificates(spec, container, cluster, node_type)


def add_companions(spec: Json, cluster: RayCluster, node_type: str, head_fqdn: str, login: bool) -> None:
    """Autoscaler (of the head) and collector, sharing Ray's logs with the Ray container."""
    ray, companions = spec["containers"][0], []
    if node_type == labels.HEAD and is_autoscaling(cluster):
        autoscaler = autoscaler_container(cluster, ray["image"], login)
        users = autoscaler.pop("volumeMounts", [])
        mount_token(spec, autoscaler, cluster)
        mount_certificates(spec, autoscaler, cluster, node_type)
        if users:
            autoscaler["volumeMounts"] = [*autoscaler.get("volumeMounts", []), *users]
        companions.append(autoscaler)
    if (options := collector_options(cluster)) is not None:
        collector = collector_container(cluster, options, node_type, head_fqdn)
        mount_token(spec, collector, cluster)
        companions.append(collector)
    if companions:
        for container in (ray, *companions):
            add_logs(spec, container)
    spec["containers"].extend(companions)
