"""The RayJob's own head Service, a stable address of whichever cluster runs the present attempt (contract rayjob §3.0,
objects §4.1, §4.2)."""

from typing import Any

from raybus.api.decision import Json
from raybus.api.v1 import HeadGroupSpec
from raybus.job_ctl.build.common import owner
from raybus.job_ctl.gather import JobView
from raybus.job_ctl.labels import (
    APP,
    APP_NAME,
    CLUSTER,
    CREATED_BY,
    CREATOR,
    IDENTIFIER,
    NODE_TYPE,
    head_service,
    label_value,
    origin,
)

_DEFAULT_PORTS = {"client": 10001, "dashboard": 8265, "gcs-server": 6379, "metrics": 8080, "serve": 8000}


def rayjob_head_service(view: JobView, cluster: str, head_cluster_ip: bool) -> Json:
    """The whole Service `<rayjob>-head-svc` that leads to the head of `cluster`.

    `head_cluster_ip`: the operator wants Services with an address where KubeRay makes headless ones.
    """
    spec = view.job.spec.ray_cluster_spec
    head = spec.head_group_spec if spec is not None else HeadGroupSpec()
    user = head.head_service or {}
    labels = {**origin(view.name), NODE_TYPE: "head", IDENTIFIER: label_value(f"{view.name}-head")}
    metadata: Json = {
        "name": head_service(view.name),
        "namespace": view.namespace,
        "labels": labels,
        "ownerReferences": owner(view),
    }
    annotations = (user.get("metadata") or {}).get("annotations")
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata,
        "spec": _spec(head, user.get("spec") or {}, cluster, head_cluster_ip),
    }


def _spec(head: HeadGroupSpec, user: dict[str, Any], cluster: str, head_cluster_ip: bool) -> Json:
    selector = {
        CLUSTER: cluster,
        NODE_TYPE: "head",
        IDENTIFIER: label_value(f"{cluster}-head"),
        APP_NAME: APP,
        CREATED_BY: CREATOR,
    }
    if head.head_service is not None:
        ports = [*(user.get("ports") or []), *_ports(head)]
        given = {"type": head.service_type} if head.service_type else {}
        return {**given, **user, "selector": selector, "ports": ports}
    spec: Json = {"selector": selector, "ports": _ports(head), "type": head.service_type or "ClusterIP"}
    if head.service_type in ("", "ClusterIP") and not head_cluster_ip:
        spec.update(clusterIP="None", publishNotReadyAddresses=True)
    return spec


def _ports(head: HeadGroupSpec) -> list[Json]:
    """Ports of the head's Ray container, else Ray's own; sorted by name."""
    containers = (head.template.get("spec") or {}).get("containers") or [{}]
    found = {
        port.get("name") or f"{port['containerPort']}-port": port["containerPort"]
        for port in containers[0].get("ports") or []
    }
    numbers = {"metrics": 8080, **found} if found else _DEFAULT_PORTS
    return [{"name": name, "port": number, "appProtocol": "tcp"} for name, number in sorted(numbers.items())]
