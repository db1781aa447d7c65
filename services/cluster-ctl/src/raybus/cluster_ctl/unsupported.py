"""What a RayCluster may ask for and Raybus does not do yet: refused by name, never silently ignored.

Each row goes away with the code that replaces it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels

_CLUSTER: tuple[tuple[str, Callable[[RayCluster], object]], ...] = (
    ("spec.headGroupSpec.headService", lambda c: c.spec.head_group_spec.head_service is not None),
    ("spec.headGroupSpec.enableIngress", lambda c: c.spec.head_group_spec.enable_ingress),
    (
        f"metadata.annotations[{labels.ENABLE_SERVE_SERVICE}]",
        lambda c: c.metadata.annotations.get(labels.ENABLE_SERVE_SERVICE) == "true",
    ),
)


def unsupported_fields(cluster: RayCluster) -> Iterator[str]:
    """Paths of all fields that are set and not supported yet."""
    for path, asks in _CLUSTER:
        if asks(cluster):
            yield path
