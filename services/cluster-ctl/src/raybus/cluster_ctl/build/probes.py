"""Liveness and readiness probes of the Ray container (contract objects §2.9)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from raybus.api.decision import Json
from raybus.cluster_ctl.build.start_params import AGENT_PORT, DASHBOARD_PORT, port

_HTTP_SINCE = (2, 53, 0)
"""The agent answers for the whole node from this Ray version on."""
_SERVE_PORT = 8000
_WORKER_OF_SERVICE_FAILURES = 1
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?")


def version_of(text: str) -> tuple[int, int, int] | None:
    """The number in a `rayVersion`: two or three parts, an optional `v`, what follows is ignored. None = unreadable."""
    match = _VERSION.match(text)
    return None if match is None else (int(match[1]), int(match[2]), int(match[3] or 0))


def set_probes(container: Json, params: Mapping[str, str], ray_version: str, head: bool, of_service: bool) -> None:
    """Add each probe that the user has not defined; `of_service`: the cluster belongs to a RayService."""
    agent = port(params, "dashboard-agent-listen-port", AGENT_PORT)
    node = _check(2, f"http://localhost:{agent}/api/local_raylet_healthz")
    checks = [node]
    if head:
        dashboard = port(params, "dashboard-port", DASHBOARD_PORT)
        checks.append(_check(10, f"http://localhost:{dashboard}/api/gcs_healthz"))
    timeout = 5 if head else 2
    version = version_of(ray_version)
    http = {"httpGet": {"path": "/api/healthz", "port": agent}}
    handler = http if version is not None and version >= _HTTP_SINCE else _exec(checks)
    if "livenessProbe" not in container:
        container["livenessProbe"] = {**handler, **_timing(30, timeout, 120)}
    if "readinessProbe" not in container:
        failures = 10
        if of_service and not head:
            failures = _WORKER_OF_SERVICE_FAILURES
            handler = _exec([node, _check(10, f"http://localhost:{_serve_port(container)}/-/healthz")])
        container["readinessProbe"] = {**handler, **_timing(10, timeout, failures)}


def _check(timeout: int, url: str) -> str:
    return f"wget --tries 1 -T {timeout} -q -O- {url} | grep success"


def _exec(checks: list[str]) -> Json:
    return {"exec": {"command": ["bash", "-c", " && ".join(checks)]}}


def _timing(delay: int, timeout: int, failures: int) -> Json:
    return {
        "initialDelaySeconds": delay,
        "timeoutSeconds": timeout,
        "periodSeconds": 5,
        "successThreshold": 1,
        "failureThreshold": failures,
    }


def _serve_port(container: Json) -> int:
    ports: dict[str, int] = {entry.get("name", ""): entry["containerPort"] for entry in container.get("ports") or ()}
    return ports.get("serve", _SERVE_PORT)
