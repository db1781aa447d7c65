"""What head and worker pods have in common (contract objects §2.1, §2.2, §2.7)."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels, names
from raybus.cluster_ctl.build.env import Env, add_head_address
from raybus.cluster_ctl.build.ownership import creator, owner_reference
from raybus.cluster_ctl.build.start_params import METRICS_PORT
from raybus.cluster_ctl.settings import ClusterKnobs

_FIXED = (labels.CLUSTER, labels.NODE_TYPE, labels.GROUP)
"""Labels by which pods are found again: neither template nor group can change them."""


def pod_labels(
    cluster: RayCluster, template: Json, node_type: str, group: str, own: Mapping[str, str], knobs: ClusterKnobs
) -> dict[str, str]:
    """Labels of a pod: ours, then the template's, then the group's (`own`), then what the operator wants if missing."""
    base = {
        labels.IS_RAY_NODE: "yes",
        labels.CLUSTER: cluster.metadata.name,
        labels.NODE_TYPE: node_type,
        labels.GROUP: group,
        labels.IDENTIFIER: names.label_value(f"{cluster.metadata.name}-{node_type}"),
        labels.APP_NAME: labels.APP,
        labels.CREATED_BY: labels.CREATOR,
    }
    given = {**(_metadata(template).get("labels") or {}), **own}
    merged = {**base, **{key: value for key, value in given.items() if key not in _FIXED}}
    for key, value in knobs.default_pod_labels:
        merged.setdefault(key, value)
    if creator(cluster) == "RayService":
        merged[labels.SERVE] = "false" if node_type == labels.HEAD else "true"
    return merged


def pod_annotations(cluster: RayCluster, template: Json, more: Mapping[str, str], knobs: ClusterKnobs) -> Json:
    """Annotations of a pod: the template's, the cluster's overwrite switch, `more`, and what the operator wants."""
    merged = dict(_metadata(template).get("annotations") or {})
    if labels.is_true(cluster.metadata.annotations.get(labels.OVERWRITE_COMMAND, "")):
        merged[labels.OVERWRITE_COMMAND] = "true"
    merged.update(more)
    for key, value in knobs.default_pod_annotations:
        merged.setdefault(key, value)
    return merged


def new_pod(cluster: RayCluster, template: Json, prefix: str) -> Json:
    """A Pod with a copy of the template's spec; labels, annotations and containers are still to be set."""
    metadata: Json = {"namespace": cluster.metadata.namespace, "generateName": prefix}
    if finalizers := _metadata(template).get("finalizers"):
        metadata["finalizers"] = list(finalizers)
    metadata["ownerReferences"] = [owner_reference(cluster)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copy.deepcopy(template.get("spec") or {})}


def add_metrics_port(container: Json) -> None:
    """The port that Ray's metrics are scraped from, unless the container names one `metrics`."""
    ports = container.setdefault("ports", [])
    if all(port.get("name") != "metrics" for port in ports):
        ports.append({"name": "metrics", "containerPort": METRICS_PORT})


def tell_init_containers(spec: Json, fqdn: str) -> None:
    """Every init container learns where the head is (contract objects §2.6)."""
    for container in spec.get("initContainers") or ():
        env = Env(container.get("env") or ())
        add_head_address(env, fqdn)
        container["env"] = env.entries


def append_sidecars(spec: Json, sidecars: Iterable[Json]) -> None:
    """Containers that the operator's configuration wants in every pod, after all others."""
    spec["containers"].extend(copy.deepcopy(sidecar) for sidecar in sidecars)


def template_name(template: Json) -> str:
    """`metadata.name` of a template, "" without one."""
    name: str = _metadata(template).get("name") or ""
    return name


def _metadata(template: Json) -> Json:
    found: Json = template.get("metadata") or {}
    return found
