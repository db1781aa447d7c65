"""The history server's collector in every Ray pod (contract objects §5.8)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import CollectorOptions, RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build.auth import add_auth_env
from raybus.cluster_ctl.build.env import Env

NAME = "ray-history-collector"
_PORT = 8084
_RESOURCES: Json = {
    "requests": {"cpu": "50m", "memory": "64Mi"},
    "limits": {"cpu": "200m", "memory": "256Mi"},
}
_EVENT_TYPES = ",".join(
    (
        "TASK_DEFINITION_EVENT",
        "TASK_LIFECYCLE_EVENT",
        "ACTOR_TASK_DEFINITION_EVENT",
        "TASK_PROFILE_EVENT",
        "DRIVER_JOB_DEFINITION_EVENT",
        "DRIVER_JOB_LIFECYCLE_EVENT",
        "ACTOR_DEFINITION_EVENT",
        "ACTOR_LIFECYCLE_EVENT",
        "NODE_DEFINITION_EVENT",
        "NODE_LIFECYCLE_EVENT",
    )
)
_RAY_VARIABLES = {
    "RAY_enable_ray_event": "true",
    "RAY_enable_core_worker_ray_event_to_aggregator": "true",
    "RAY_DASHBOARD_AGGREGATOR_AGENT_EVENTS_EXPORT_ADDR": f"http://localhost:{_PORT}/v1/events",
    "RAY_DASHBOARD_AGGREGATOR_AGENT_EXPOSABLE_EVENT_TYPES": _EVENT_TYPES,
    "RAY_DASHBOARD_AGGREGATOR_AGENT_PUBLISHER_HTTP_ENDPOINT_EXPOSABLE_EVENT_TYPES": _EVENT_TYPES,
}


def collector_options(cluster: RayCluster) -> CollectorOptions | None:
    """What is asked of the collector, None without one."""
    options = cluster.spec.history_server_options
    return None if options is None else options.collector_options


def add_event_env(env: Env, cluster: RayCluster) -> None:
    """How Ray hands its events to the collector (§2.6 row 21)."""
    if collector_options(cluster) is not None:
        for name, value in _RAY_VARIABLES.items():
            env.missing(name, value)


def collector_container(cluster: RayCluster, options: CollectorOptions, node_type: str, head_fqdn: str) -> Json:
    """The container without its mounts."""
    return {
        "name": NAME,
        "image": options.image,
        "imagePullPolicy": options.image_pull_policy or "IfNotPresent",
        "env": _env(cluster, options, node_type, head_fqdn),
        "resources": options.resources or _RESOURCES,
    }


def _env(cluster: RayCluster, options: CollectorOptions, node_type: str, head_fqdn: str) -> list[Json]:
    meta, own = cluster.metadata, {entry["name"] for entry in options.env}
    env = Env(())
    env.field("POD_IP", "status.podIP")
    env.always("RAY_CLUSTER_NAME", meta.name)
    env.always("RAY_CLUSTER_NAMESPACE", meta.namespace)
    env.always("RAY_ROLE", node_type.capitalize())
    env.always("EVENTS_PORT", str(_PORT))
    env.always("FQ_RAY_IP", head_fqdn)
    for variable, label in (("OWNER_KIND", labels.ORIGIN_KIND), ("OWNER_NAME", labels.ORIGIN_NAME)):
        if value := meta.labels.get(label):
            env.always(variable, value)
    if node_type == labels.HEAD and "RAY_DASHBOARD_ADDRESS" not in own:
        env.always("RAY_DASHBOARD_ADDRESS", "http://localhost:8265")
    for entry in options.env:
        env.append(entry)
    add_auth_env(env, cluster)
    return env.entries
