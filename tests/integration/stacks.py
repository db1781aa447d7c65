"""All services as processes on a cluster that tests share."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from raybus.dev.cluster import Cluster
from raybus.dev.kubectl import Kubectl
from raybus.dev.locks import exclusive
from raybus.dev.stack import Stack, running

OUTSIDE = {"RAYBUS_USE_KUBERNETES_PROXY": "true"}
"""Settings of services that run outside the cluster: names of Services do not resolve there."""


@contextmanager
def running_stack(
    cluster: Cluster, folder: Path, settings: Mapping[str, str], replicas: Mapping[str, int] | None = None
) -> Iterator[Stack]:
    """All services on the cluster while the block runs; another test process that has them there is waited for."""
    stack = Stack(cluster, folder, replicas or {}, settings)
    with exclusive(cluster.folder / "tests.lock", "testing Raybus on this cluster"), running(stack):
        yield stack


def uid_of(kubectl: Kubectl) -> str:
    """The identity of a cluster, as services write it on the streams (ADR 0106)."""
    uid: str = kubectl.json("get", "namespace", "kube-system")["metadata"]["uid"]
    return uid
