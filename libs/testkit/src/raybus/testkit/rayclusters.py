"""RayClusters, their pods and Services as the API server would hand them out, and views made of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from raybus.api.kinds import BY_KIND
from raybus.api.messages import Presence, Result
from raybus.api.subjects import PRESENCE, RESULT
from raybus.api.times import Instant
from raybus.api.view import Entry, View
from raybus.runtime.controller import Controller

Json = dict[str, Any]

NAMESPACE, CLUSTER_UID = "default", "11111111-1111-1111-1111-111111111111"
IMAGE = "example.test/ray:2.52.0"


def template(*, resources: Json | None = None, **container: Any) -> Json:
    """A pod template with one Ray container."""
    ray = {"name": "ray", "image": IMAGE, **({"resources": resources} if resources else {}), **container}
    return {"spec": {"containers": [ray]}}


def group(name: str, replicas: int, **more: Any) -> Json:
    """A worker group as it looks after the API server's defaults."""
    base = {"groupName": name, "replicas": replicas, "minReplicas": 0, "maxReplicas": 10, "numOfHosts": 1}
    return {**base, "template": template(), **more}


def raycluster(name: str, *groups: Json, spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Json:
    """A RayCluster of generation 1; `spec` overrides parts of the spec."""
    meta = {"name": name, "namespace": NAMESPACE, "uid": CLUSTER_UID, "generation": 1, "resourceVersion": "1"}
    body = {"headGroupSpec": {"template": template()}, "workerGroupSpecs": list(groups), **(spec or {})}
    cluster = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {**meta, **metadata}, "spec": body}
    return {**cluster, "status": status} if status is not None else cluster


def _child(kind: str, cluster: Json, name: str, labels: Mapping[str, str]) -> Json:
    meta = cluster["metadata"]
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": meta["namespace"],
            "uid": f"uid-of-{name}",
            "resourceVersion": "2",
            "labels": {"ray.io/cluster": meta["name"], **labels},
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        },
    }


def worker(cluster: Json, name: str, group_name: str, index: int = 0, **status: Any) -> Json:
    """A worker pod; Pending unless `status` says more."""
    labels = {"ray.io/node-type": "worker", "ray.io/group": group_name, "ray.io/worker-group-replica-index": str(index)}
    pod = _child("Pod", cluster, name, labels)
    return {
        **pod,
        "spec": {"containers": [{"name": "ray"}], "restartPolicy": "Always"},
        "status": {**PENDING, **status},
    }


def head(cluster: Json, name: str, **status: Any) -> Json:
    """A head pod; Pending unless `status` says more."""
    pod = _child("Pod", cluster, name, {"ray.io/node-type": "head", "ray.io/group": "headgroup"})
    return {
        **pod,
        "spec": {"containers": [{"name": "ray"}], "restartPolicy": "Always"},
        "status": {**PENDING, **status},
    }


def head_service(cluster: Json, cluster_ip: str = "None") -> Json:
    """The head Service with one port."""
    name = cluster["metadata"]["name"]
    labels = {"ray.io/node-type": "head", "ray.io/identifier": f"{name}-head"}
    service = _child("Service", cluster, f"{name}-head-svc", labels)
    ports = [{"name": "dashboard", "port": 8265, "targetPort": 8265}]
    return {**service, "spec": {"clusterIP": cluster_ip, "ports": ports}}


PENDING: Json = {"phase": "Pending"}
READY: Json = {"phase": "Running", "podIP": "10.1.0.7", "conditions": [{"type": "Ready", "status": "True"}]}


TERMINATING_SINCE = "2027-01-15T08:00:00Z"


def terminating(obj: Json, since: str = TERMINATING_SINCE) -> Json:
    """The same object with a deletion timestamp."""
    return {**obj, "metadata": {**obj["metadata"], "deletionTimestamp": since}}


def view_of(
    controller: Controller[Any, Any],
    root: Json,
    *children: Json,
    gone: Iterable[tuple[str, str]] = (),
    result: Result | None = None,
    known: Iterable[Presence] = (),
) -> View:
    """The view of `root` with its children; `gone`: (kind, name) of tombstones; `known`: of objects
    that were needed."""
    entries: dict[tuple[str, str], Entry] = {}
    for obj in (root, *children):
        token, meta = BY_KIND[obj["kind"]].token, obj["metadata"]
        value = controller.decoders[token](msgspec.json.encode(obj))
        entries[token, meta["name"]] = Entry(value=value, uid=meta["uid"], resource_version=meta["resourceVersion"])
    for kind, name in gone:
        entries[BY_KIND[kind].token, name] = Entry(value=None, gone=True)
    for presence in known:
        slot = f"{presence.ref.kind}/{presence.ref.name}"
        entries[PRESENCE, slot] = Entry(value=presence, observed_at=Instant(0.0))
    if result is not None:
        entries[RESULT, "applier"] = Entry(value=result, observed_at=Instant(0.0))
    meta = root["metadata"]
    return View(controller=controller.name, namespace=meta["namespace"], name=meta["name"], entries=entries)
