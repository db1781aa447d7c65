"""What ties children to their RayCluster."""

from __future__ import annotations

from collections.abc import Mapping

from raybus.api.decision import Json
from raybus.api.v1 import API_VERSION, RayCluster
from raybus.cluster_ctl import labels

_CREATORS = ("RayCluster", "RayJob", "RayService")


def owner_reference(cluster: RayCluster) -> Json:
    """The controller reference that every child carries (contract reconcile §20)."""
    return {
        "apiVersion": API_VERSION,
        "kind": "RayCluster",
        "name": cluster.metadata.name,
        "uid": cluster.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def child_metadata(cluster: RayCluster, name: str, more: Mapping[str, str]) -> Json:
    """Metadata of a child: its cluster's label and `more`, and its owner."""
    return {
        "name": name,
        "namespace": cluster.metadata.namespace,
        "labels": {labels.CLUSTER: cluster.metadata.name, **more},
        "ownerReferences": [owner_reference(cluster)],
    }


def creator(cluster: RayCluster) -> str:
    """The kind that made this RayCluster; missing or unknown means it was made by hand (contract objects §2.1)."""
    kind = cluster.metadata.labels.get(labels.ORIGIN_KIND, "")
    return kind if kind in _CREATORS else "RayCluster"
