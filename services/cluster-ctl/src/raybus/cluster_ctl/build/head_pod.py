"""The head pod (contract objects §2)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.build import fault_tolerance
from raybus.cluster_ctl.build.auth import add_auth_env
from raybus.cluster_ctl.build.autoscaler import add_version_env, is_autoscaling, set_restart_policy
from raybus.cluster_ctl.build.autoscaler_rbac import account_of_head
from raybus.cluster_ctl.build.command import ray_start, set_command
from raybus.cluster_ctl.build.env import Env, add_identity, add_serve_tuning
from raybus.cluster_ctl.build.head_address import head_address
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
from raybus.cluster_ctl.build.spec_hash import spec_hash
from raybus.cluster_ctl.build.start_params import head_params, with_container
from raybus.cluster_ctl.build.tls import add_tls_env, put_wait_first
from raybus.cluster_ctl.build.volumes import add_shared_memory
from raybus.cluster_ctl.build.wiring import add_companions, mount_credentials
from raybus.cluster_ctl.settings import ClusterKnobs


def head_pod(cluster: RayCluster, knobs: ClusterKnobs) -> Json:
    """The whole Pod without a name."""
    group, template = cluster.spec.head_group_spec, cluster.spec.head_group_spec.template
    pod = new_pod(cluster, template, names.head_prefix(cluster.metadata.name))
    if knobs.deterministic_head_name:
        del pod["metadata"]["generateName"]
    stamps = {
        **fault_tolerance.pod_annotations(cluster),
        labels.RECREATE_HASH: spec_hash(cluster.spec),
        labels.OPERATOR_VERSION: knobs.version,
    }
    pod["metadata"]["labels"] = pod_labels(cluster, template, labels.HEAD, labels.HEAD_GROUP, group.labels, knobs)
    pod["metadata"]["annotations"] = pod_annotations(cluster, template, stamps, knobs)
    spec, container = pod["spec"], pod["spec"]["containers"][0]
    params = head_params(group.ray_start_params, group.resources, group.labels)
    if is_autoscaling(cluster):
        params["no-monitor"] = "true"
        spec["serviceAccountName"] = account_of_head(cluster)
    set_restart_policy(spec, cluster)
    params |= fault_tolerance.start_params(cluster)
    start = ray_start(with_container(params, container), head=True)
    set_command(container, start, pod["metadata"]["annotations"], knobs.login_shell)
    container["env"] = _env(cluster, container, start, knobs)
    add_metrics_port(container)
    fault_tolerance.mount_storage(spec, container, cluster)
    mount_credentials(spec, cluster, labels.HEAD)
    add_shared_memory(spec, container, params)
    if knobs.probes:
        set_probes(container, params, cluster.spec.ray_version, head=True, of_service=False)
    fqdn = head_address(cluster, knobs.cluster_domain).fqdn
    put_wait_first(spec, container, cluster, labels.HEAD)
    tell_init_containers(spec, fqdn)
    add_companions(spec, cluster, labels.HEAD, fqdn, knobs.login_shell)
    append_sidecars(spec, knobs.head_sidecars)
    return pod


def _env(cluster: RayCluster, container: Json, start: str, knobs: ClusterKnobs) -> list[Json]:
    """Contract objects §2.6, in its order."""
    origin, port = creator(cluster), head_address(cluster, knobs.cluster_domain).port
    env = Env(container.get("env") or ())
    add_version_env(env, cluster)
    fault_tolerance.add_to_head(env, cluster, cluster.spec.head_group_spec.ray_start_params)
    add_auth_env(env, cluster)
    add_tls_env(env, cluster)
    env.append_missing(knobs.default_container_envs)
    add_identity(env, start, port)
    add_serve_tuning(env, origin)
    env.missing("RAY_ADDRESS", f"127.0.0.1:{port}")
    env.missing("RAY_USAGE_STATS_KUBERAY_IN_USE", "1")
    env.always("RAY_USAGE_STATS_EXTRA_TAGS", f"kuberay_version={knobs.version};kuberay_crd={origin}")
    env.missing("RAY_DASHBOARD_ENABLE_K8S_DISK_USAGE", "1")
    add_event_env(env, cluster)
    return env.entries
