"""From the view on the bus to what decisions read; the only reader of raw bytes in this controller (design §4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from raybus.api.decision import Ref
from raybus.api.messages import Presence, Result
from raybus.api.subjects import PRESENCE, RESULT
from raybus.api.times import Instant
from raybus.api.v1 import RayCluster
from raybus.api.view import View
from raybus.cluster_ctl.children import KIND_OF_TOKEN, Child, decode_child
from raybus.cluster_ctl.claims import decode_claim
from raybus.cluster_ctl.jobs import decode_job
from raybus.cluster_ctl.names import is_head_name
from raybus.cluster_ctl.pods import Pod, decode_pod
from raybus.cluster_ctl.services import decode_service
from raybus.cluster_ctl.view import ClusterView

_decode_cluster: Callable[[bytes], RayCluster] = msgspec.json.Decoder(RayCluster).decode

DECODERS: Mapping[str, Callable[[bytes], Any]] = {
    "raycluster": _decode_cluster,
    "pod": decode_pod,
    "service": decode_service,
    **dict.fromkeys(KIND_OF_TOKEN, decode_child),
    "job": decode_job,
    "pvc": decode_claim,
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
    children, presences = _others(view, uid)
    result = view.get(RESULT, "applier")
    known: Result | None = result.value if result is not None else None
    return ClusterView(
        cluster=cluster,
        pods=pods,
        services=services,
        jobs=tuple(entry.value for _, entry in view.living("job") if entry.value.owner == uid),
        resting=view.gone("pod"),
        head_deaths=_head_deaths(view),
        refusals=known.refusals if known is not None and known.root_uid == uid else (),
        claims=tuple(entry.value for _, entry in view.living("pvc")),
        children=children,
        presences=presences,
    )


def _others(view: View, uid: str) -> tuple[dict[tuple[str, str], Child], dict[Ref, Presence]]:
    """Children of other kinds that the cluster with this UID controls, and what is known of needed objects."""
    children: dict[tuple[str, str], Child] = {}
    presences: dict[Ref, Presence] = {}
    for (token, name), entry in view.entries.items():
        if entry.gone:
            continue
        if token == PRESENCE:
            presences[entry.value.ref] = entry.value
        elif token in KIND_OF_TOKEN and entry.value.owner == uid:
            children[KIND_OF_TOKEN[token], name] = entry.value
    return children, presences


def _head_deaths(view: View) -> tuple[Instant, ...]:
    """When heads of generated names went; those of a fixed name leave one trace at most."""
    return tuple(
        entry.observed_at
        for (token, name), entry in view.entries.items()
        if token == "pod" and entry.gone and is_head_name(name, view.name)
    )
