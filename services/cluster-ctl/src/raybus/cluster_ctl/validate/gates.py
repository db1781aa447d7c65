"""Fields that need an open feature gate (contract objects §7.2 rules 12, 15, 20, 22, 23)."""

from __future__ import annotations

from collections.abc import Callable, Container
from typing import NamedTuple

from raybus.api.rules import NotInCel
from raybus.api.v1 import RayCluster


class Gated(NamedTuple):
    """`asks`: whether a cluster sets the field; an option that is there but off counts as set (rule 23)."""

    gate: str
    field: str
    asks: Callable[[RayCluster], bool]


def _rocksdb(cluster: RayCluster) -> bool:
    options = cluster.spec.gcs_fault_tolerance_options
    return options is not None and options.backend == "rocksdb"


GATED: tuple[Gated, ...] = (
    Gated("GCSFaultToleranceEmbeddedStorage", "gcsFaultToleranceOptions.backend rocksdb", _rocksdb),
    Gated("RayClusterHistoryServer", "historyServerOptions", lambda c: c.spec.history_server_options is not None),
    Gated("RayClusterNetworkPolicy", "networkPolicy", lambda c: c.spec.network_policy is not None),
    Gated("RayClusterMTLS", "tlsOptions", lambda c: c.spec.tls_options is not None),
    Gated(
        "RayJobDeletionPolicy", "workerGroupSpecs.suspend", lambda c: any(g.suspend for g in c.spec.worker_group_specs)
    ),
)

CEL = NotInCel("the API server does not know which gates are open")
"""Of every row."""


def closed_gate(cluster: RayCluster, gates: Container[str]) -> str | None:
    """The first field whose gate is closed."""
    for row in GATED:
        if row.gate not in gates and row.asks(cluster):
            return f"{row.field} needs feature gate {row.gate}"
    return None
