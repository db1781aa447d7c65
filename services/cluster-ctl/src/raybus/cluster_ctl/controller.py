"""cluster-ctl as the runtime sees it."""

from __future__ import annotations

from raybus.cluster_ctl.decide import decide
from raybus.cluster_ctl.gather import DECODERS, gather
from raybus.cluster_ctl.gauges import GAUGES
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView
from raybus.runtime.controller import Controller


def controller(knobs: ClusterKnobs) -> Controller[ClusterView, ClusterKnobs]:
    """The RayCluster controller under these settings."""
    return Controller(name="cluster", decoders=DECODERS, gather=gather, decide=decide, knobs=knobs, gauges=GAUGES)
