"""Ingress and OpenShift Route in front of the head's dashboard (contract objects §5.2, §5.3)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import IngressOptions, RayCluster
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.build.head_address import head_service_name
from raybus.cluster_ctl.build.ownership import child_metadata
from raybus.cluster_ctl.build.ports import dashboard_port
from raybus.cluster_ctl.keeping import listed

CLASS = "kubernetes.io/ingress.class"
_OF_KUBECTL = "kubectl.kubernetes.io/last-applied-configuration"


def ingress(cluster: RayCluster) -> Json:
    """The whole Ingress."""
    options = cluster.spec.head_group_spec.ingress_options or IngressOptions()
    service = {"name": head_service_name(cluster), "port": {"number": dashboard_port(cluster)}}
    path = {
        "path": options.path or "/",
        "pathType": options.path_type or "Prefix",
        "backend": {"service": service},
    }
    rule: Json = {"http": {"paths": [path]}}
    if options.host:
        rule["host"] = options.host
    spec: Json = {"rules": [rule]}
    if wanted := cluster.metadata.annotations.get(CLASS):
        spec["ingressClassName"] = wanted
    if options.tls:
        spec["tls"] = list(options.tls)
    metadata = _metadata(cluster, names.short_name(f"{cluster.metadata.name}-head-ingress"), (CLASS, _OF_KUBECTL))
    if "annotations" in metadata:
        metadata["annotations"] = listed(metadata["annotations"])
    return {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": metadata, "spec": spec}


def route(cluster: RayCluster) -> Json:
    """The whole Route; options of the Ingress play no part in it."""
    meta = cluster.metadata
    spec = {
        "to": {"kind": "Service", "name": head_service_name(cluster), "weight": 100},
        "port": {"targetPort": dashboard_port(cluster)},
        "wildcardPolicy": "None",
    }
    metadata = _metadata(cluster, names.route_name(f"{meta.name}-head-route", meta.namespace), (_OF_KUBECTL,))
    return {"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": metadata, "spec": spec}


def _metadata(cluster: RayCluster, name: str, left_out: tuple[str, ...]) -> Json:
    """The cluster's own annotations configure the Ingress controller."""
    own = {
        labels.IDENTIFIER: names.label_value(f"{cluster.metadata.name}-head"),
        labels.APP_NAME: labels.APP,
        labels.CREATED_BY: labels.CREATOR,
    }
    metadata = child_metadata(cluster, name, own)
    annotations = {key: value for key, value in cluster.metadata.annotations.items() if key not in left_out}
    return {**metadata, "annotations": annotations} if annotations else metadata
