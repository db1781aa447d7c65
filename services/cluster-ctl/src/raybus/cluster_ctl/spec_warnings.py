"""What of a valid spec will not work as its author expects: said, not refused (contract reconcile §2 step 6)."""

from __future__ import annotations

from raybus.api.decision import Note
from raybus.api.reasons import Reason
from raybus.cluster_ctl.build.autoscaler import chosen_version
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView


def warn_of_spec(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """Version 1 of the autoscaler and workers that the kubelet starts again."""
    if chosen_version(view.cluster) != "v1":
        return Outcome()
    groups = ", ".join(
        group.group_name
        for group in view.cluster.spec.worker_group_specs
        if (group.template.get("spec") or {}).get("restartPolicy") not in (None, "", "Never")
    )
    if not groups:
        return Outcome()
    text = f"restartPolicy for worker groups [{groups}] should be Never or unset when using autoscaler V1"
    note = Note(type="Warning", reason=Reason.INVALID_RAY_CLUSTER_SPEC, action="Validate", text=text)
    return Outcome(warnings=(note,))
