"""Worker pods of one group (contract objects §3)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster, WorkerGroupSpec
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.build import fault_tolerance
from raybus.cluster_ctl.build.auth import add_auth_env
from raybus.cluster_ctl.build.autoscaler import set_restart_policy
from raybus.cluster_ctl.build.command import ray_start, set_command
from raybus.cluster_ctl.build.env import Env, add_head_address, add_identity, add_serve_tuning
from raybus.cluster_ctl.build.head_address import HeadAddress, head_address
from raybus.cluster_ctl.build.history import add_event_env
from raybus.cluster_ctl.build.ownership import creator
from raybus.cluster_ctl.build.pod import (
    add_metrics_port,
    append_sidecars,
    new_pod,
    pod_annotations,
    pod_labels,
    tell_init_containers,
)
from raybus.cluster_ctl.build.probes import set_probes
from raybus.cluster_ctl.build.start_params import with_container, worker_params
from raybus.cluster_ctl.build.tls import add_tls_env, put_wait_first
from raybus.cluster_ctl.build.volumes import add_shared_memory
from raybus.cluster_ctl.build.wait_gcs_ready import wait_gcs_ready
from raybus.cluster_ctl.build.wiring import add_companions, mount_credentials
from raybus.cluster_ctl.settings import ClusterKnobs


def worker_pod(cluster: RayCluster, group: WorkerGroupSpec, knobs: ClusterKnobs) -> Json:
    """The whole Pod without a name and without the labels that tell the group's pods apart."""
    template, head = group.template, head_address(cluster, knobs.cluster_domain)
    pod = new_pod(cluster, template, names.worker_prefix(cluster.metadata.name, group.group_name))
    pod["metadata"]["labels"] = pod_labels(cluster, template, labels.WORKER, group.group_name, group.labels, knobs)
    if annotations := pod_annotations(cluster, template, {}, knobs):
        pod["metadata"]["annotations"] = annotations
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    if knobs.init_container:
        waiting = wait_gcs_ready(container, str(head), cluster.metadata.name, knobs.login_shell)
        spec["initContainers"] = [*(spec.get("initContainers") or ()), waiting]
    params = worker_params(group.ray_start_params, group.resources, group.labels, str(head))
    start = ray_start(with_container(params, container), head=False)
    set_command(container, start, annotations, knobs.login_shell)
    container["env"] = _env(cluster, container, start, head, knobs)
    add_metrics_port(container)
    set_restart_policy(spec, cluster)
    mount_credentials(spec, cluster, labels.WORKER)
    add_shared_memory(spec, container, params)
    if knobs.probes:
        of_service = creator(cluster) == "RayService"
        set_probes(container, params, cluster.spec.ray_version, head=False, of_service=of_service)
    put_wait_first(spec, container, cluster, labels.WORKER)
    tell_init_containers(spec, head.fqdn)
    add_companions(spec, cluster, labels.WORKER, head.fqdn, knobs.login_shell)
    append_sidecars(spec, knobs.worker_sidecars)
    return pod


def _env(cluster: RayCluster, container: Json, start: str, head: HeadAddress, knobs: ClusterKnobs) -> list[Json]:
    """Contract objects §3.1, in its order."""
    env = Env(container.get("env") or ())
    fault_tolerance.add_to_worker(env, cluster)
    add_auth_env(env, cluster)
    add_tls_env(env, cluster)
    env.append_missing(knobs.default_container_envs)
    add_head_address(env, head.fqdn)
    add_identity(env, start, head.port)
    add_serve_tuning(env, creator(cluster))
    env.missing("RAY_ADDRESS", str(head))
    env.missing("RAY_USAGE_STATS_KUBERAY_IN_USE", "1")
    env.missing("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1")
    add_event_env(env, cluster)
    return env.entries
