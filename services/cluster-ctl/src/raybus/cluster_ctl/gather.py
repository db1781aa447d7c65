"""From the view on the bus to what decisions read; the only reader of raw bytes in this controller (design §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from raybus.api.messages import Result
from raybus.api.subjects import RESULT
from raybus.api.v1 import RayCluster
from raybus.api.view import View
from raybus.cluster_ctl.pods import Pod, decode_pod
from raybus.cluster_ctl.services import decode_service
from raybus.cluster_ctl.view import ClusterView

_decode_cluster: Callable[[bytes], RayCluster] = msgspec.json.Decoder(RayCluster).decode

DECODERS: Mapping[str, Callable[[bytes], Any]] = {
    "raycluster": _decode_cluster,
    "pod": decode_pod,
    "service": decode_service,
}


def gather(view: View) -> ClusterView | None:
    """The typed view of one RayCluster, None while the RayCluster itself is not there.

    A child counts when this very RayCluster controls it: children of a deleted cluster of the same name are on their
    way out, and foreign ones with our labels are not ours to judge. One without any controller counts as KubeRay
    counts it, by its label (contract reconcile §20).
    """
    root = view.get("raycluster", view.name)
    if root is None:
        return None
    cluster: RayCluster = root.value
    uid = cluster.metadata.uid
    pods: tuple[Pod, ...] = tuple(entry.value for _, entry in view.living("pod") if entry.value.owner in ("", uid))
    services = tuple(entry.value for _, entry in view.living("service") if entry.value.owner in ("", uid))
    result = view.get(RESULT, "applier")
    known: Result | None = result.value if result is not None else None
    return ClusterView(
        cluster=cluster,
        pods=pods,
        services=services,
        resting=view.gone("pod"),
        refusals=known.refusals if known is not None and known.root_uid == uid else (),
    )
