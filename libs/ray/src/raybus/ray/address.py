"""Where a dashboard is, and how long a call to it may take."""

from dataclasses import dataclass, field

DIRECT_TIMEOUT = 2.0
PROXY_TIMEOUT = 10.0


@dataclass(frozen=True)
class Endpoint:
    """base: the URL before `/api/...`, without a final slash; timeout: seconds for a whole call; token: of a cluster
    with token authentication, or ""."""

    base: str
    timeout: float
    token: str = field(default="", repr=False)


def direct(address: str, token: str = "") -> Endpoint:
    """A dashboard reached by its own address: "host:port" or a URL (contract rayjob §5.1)."""
    base = address if "://" in address else f"http://{address}"
    return Endpoint(base.rstrip("/"), DIRECT_TIMEOUT, token)


def through_api_server(server: str, namespace: str, service: str, token: str = "") -> Endpoint:
    """A dashboard reached through the API server's service proxy (contract rayjob §5.1).

    server: the API server's URL; service: the head Service, whose port is named `dashboard`.
    """
    path = f"/api/v1/namespaces/{namespace}/services/{service}:dashboard/proxy"
    return Endpoint(server.rstrip("/") + path, PROXY_TIMEOUT, token)
