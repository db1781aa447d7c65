"""The batch schedulers by the name that the settings choose them by."""

from __future__ import annotations

from collections.abc import Mapping

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl.batch.kubernetes import KUBERNETES
from raybus.cluster_ctl.batch.plugins import SCHEDULER_PLUGINS
from raybus.cluster_ctl.batch.queues import KAI, YUNIKORN
from raybus.cluster_ctl.batch.scheduler import Gang, Scheduler
from raybus.cluster_ctl.batch.volcano import VOLCANO
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView
from raybus.runtime.schedulers import WAS

SCHEDULERS: Mapping[str, Scheduler] = {
    "volcano": VOLCANO,
    "yunikorn": YUNIKORN,
    "scheduler-plugins": SCHEDULER_PLUGINS,
    "kai-scheduler": KAI,
    WAS: KUBERNETES,
}


def decide_gang(view: ClusterView, knobs: ClusterKnobs) -> Gang:
    """What the chosen scheduler needs beside the pods; nothing without one."""
    return SCHEDULERS[knobs.batch_scheduler].objects(view, knobs) if knobs.batch_scheduler else Gang()


def stamped(pod: Json, cluster: RayCluster, group: str, knobs: ClusterKnobs) -> Json:
    """`pod` of `group` as the chosen scheduler wants it."""
    if knobs.batch_scheduler:
        SCHEDULERS[knobs.batch_scheduler].stamp(pod, cluster, group)
    return pod
