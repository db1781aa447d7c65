"""The head Service (contract objects §4.1)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.build.ownership import owner_reference
from raybus.cluster_ctl.settings import ClusterKnobs

_DEFAULT_PORTS = {"client": 10001, "gcs-server": 6379, "dashboard": 8265, "metrics": 8080, "serve": 8000}


def head_service(cluster: RayCluster, knobs: ClusterKnobs) -> Json:
    """The whole Service."""
    group = cluster.spec.head_group_spec
    own = (group.template.get("metadata") or {}).get("labels") or {}
    selector = {
        labels.CLUSTER: cluster.metadata.name,
        labels.NODE_TYPE: labels.HEAD,
        labels.IDENTIFIER: names.label_value(f"{cluster.metadata.name}-head"),
        labels.APP_NAME: own.get(labels.APP_NAME, labels.APP),
        labels.CREATED_BY: labels.CREATOR,
    }
    metadata: Json = {
        "name": names.head_service(cluster.metadata.name),
        "namespace": cluster.metadata.namespace,
        "labels": selector,
        "ownerReferences": [owner_reference(cluster)],
    }
    if cluster.spec.head_service_annotations:
        metadata["annotations"] = dict(cluster.spec.head_service_annotations)
    ports = [
        {"name": name, "port": port, "appProtocol": "tcp"} for name, port in sorted(_ports(group.template).items())
    ]
    spec: Json = {"selector": dict(selector), "ports": ports}
    if group.service_type:
        spec["type"] = group.service_type
    if group.service_type in ("", "ClusterIP") and not knobs.head_cluster_ip:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _ports(template: Json) -> dict[str, int]:
    """Name -> number: those of the Ray container, with `metrics` if it names none; all of Ray's if it has none."""
    given = template["spec"]["containers"][0].get("ports") or ()
    ports = {port.get("name") or f"{port['containerPort']}-port": port["containerPort"] for port in given}
    return {"metrics": _DEFAULT_PORTS["metrics"], **ports} if ports else dict(_DEFAULT_PORTS)
