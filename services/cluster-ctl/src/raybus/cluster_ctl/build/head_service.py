"""The head Service: generated, or the user's with what Ray needs (contract objects §4.1, §4.2)."""

from __future__ import annotations

import copy

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.build.head_address import head_service_name
from raybus.cluster_ctl.build.ownership import owner_reference
from raybus.cluster_ctl.build.ports import head_ports
from raybus.cluster_ctl.settings import ClusterKnobs


def head_service(cluster: RayCluster, knobs: ClusterKnobs) -> Json:
    """The whole Service. Of the user's, labels and ports stay beside ours, everything else but the selector is kept."""
    given, own = cluster.spec.head_group_spec.head_service, _selector(cluster)
    given_meta: Json = (given or {}).get("metadata") or {}
    metadata: Json = {
        "name": head_service_name(cluster),
        "namespace": cluster.metadata.namespace,
        "labels": {**(given_meta.get("labels") or {}), **own},
        "ownerReferences": [owner_reference(cluster)],
    }
    annotations = {**(given_meta.get("annotations") or {}), **cluster.spec.head_service_annotations}
    if annotations:
        metadata["annotations"] = annotations
    if finalizers := given_meta.get("finalizers"):
        metadata["finalizers"] = list(finalizers)
    spec = _generated(cluster, knobs) if given is None else _completed(cluster, given.get("spec") or {})
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {**spec, "selector": own}}


def _selector(cluster: RayCluster) -> dict[str, str]:
    """Labels of the Service, and how it finds the head."""
    own = (cluster.spec.head_group_spec.template.get("metadata") or {}).get("labels") or {}
    return {
        labels.CLUSTER: cluster.metadata.name,
        labels.NODE_TYPE: labels.HEAD,
        labels.IDENTIFIER: names.label_value(f"{cluster.metadata.name}-head"),
        labels.APP_NAME: own.get(labels.APP_NAME, labels.APP),
        labels.CREATED_BY: labels.CREATOR,
    }


def _generated(cluster: RayCluster, knobs: ClusterKnobs) -> Json:
    kind = cluster.spec.head_group_spec.service_type
    spec: Json = {"ports": _ports(cluster)}
    if kind:
        spec["type"] = kind
    if kind in ("", "ClusterIP") and not knobs.head_cluster_ip:
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    return spec


def _completed(cluster: RayCluster, given: Json) -> Json:
    """The user's spec and after his ports all of Ray's, also where a name comes twice (contract objects §9.22)."""
    spec = copy.deepcopy(given)
    spec["ports"] = [*(spec.get("ports") or ()), *_ports(cluster)]
    if kind := cluster.spec.head_group_spec.service_type:
        spec.setdefault("type", kind)
    return spec


def _ports(cluster: RayCluster) -> list[Json]:
    return [{"name": name, "port": port, "appProtocol": "tcp"} for name, port in sorted(head_ports(cluster).items())]
