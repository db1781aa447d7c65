"""Ports of the head's Ray container, as Services and Ingress need them (contract objects §4.1, §4.3, §5.2)."""

from __future__ import annotations

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster

DEFAULT_PORTS = {"client": 10001, "gcs-server": 6379, "dashboard": 8265, "metrics": 8080, "serve": 8000}


def declared_ports(cluster: RayCluster) -> dict[str, int]:
    """Name -> number of the ports that the container declares; an unnamed one is called after its number."""
    container: Json = cluster.spec.head_group_spec.template["spec"]["containers"][0]
    given = container.get("ports") or ()
    return {port.get("name") or f"{port['containerPort']}-port": port["containerPort"] for port in given}


def head_ports(cluster: RayCluster) -> dict[str, int]:
    """Ports of the head Service: those declared, with `metrics`; all of Ray's if there are none."""
    declared = declared_ports(cluster)
    return {"metrics": DEFAULT_PORTS["metrics"], **declared} if declared else dict(DEFAULT_PORTS)


def serve_ports(cluster: RayCluster) -> dict[str, int]:
    """Ports of Ray Serve: `serve` and those whose names begin with `serve-`; empty when there are only others."""
    declared = declared_ports(cluster) or {"serve": DEFAULT_PORTS["serve"]}
    return {name: port for name, port in declared.items() if name == "serve" or name.startswith("serve-")}


def dashboard_port(cluster: RayCluster) -> int:
    """Where the dashboard listens."""
    return declared_ports(cluster).get("dashboard", DEFAULT_PORTS["dashboard"])
