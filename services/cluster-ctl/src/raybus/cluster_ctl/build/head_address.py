"""Where workers and users find the head (contract objects §2.3, §4.1)."""

from __future__ import annotations

from typing import NamedTuple

from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import names
from raybus.cluster_ctl.build.start_params import GCS_PORT


class HeadAddress(NamedTuple):
    """DNS name of the head Service and the GCS port, which is whatever text the user wrote."""

    fqdn: str
    port: str

    def __str__(self) -> str:
        return f"{self.fqdn}:{self.port}"


def head_service_name(cluster: RayCluster) -> str:
    """The user's name for the head Service, or the generated one."""
    given = cluster.spec.head_group_spec.head_service or {}
    name: str = (given.get("metadata") or {}).get("name") or names.head_service(cluster.metadata.name)
    return name


def head_address(cluster: RayCluster, domain: str) -> HeadAddress:
    """The head of `cluster`; `domain` is the cluster's DNS domain."""
    service = head_service_name(cluster)
    port = cluster.spec.head_group_spec.ray_start_params.get("port", str(GCS_PORT))
    return HeadAddress(f"{service}.{cluster.metadata.namespace}.svc.{domain}", port)
