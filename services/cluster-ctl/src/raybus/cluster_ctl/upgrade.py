"""`upgradeStrategy: Recreate`: which clusters need new pods (contract reconcile §9)."""

from __future__ import annotations

from raybus.api.decision import Json, Patch
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build.spec_hash import spec_hash
from raybus.cluster_ctl.head import head_of
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.pods import Pod
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView


def outdated_head(view: ClusterView, knobs: ClusterKnobs) -> Pod | None:
    """The head, if it was made from another spec than the present one; only heads are compared."""
    head = _stamped_head(view)
    if head is None or _of_another_operator(head, knobs) or head.made_from == spec_hash(view.cluster.spec):
        return None
    return head


def take_over_head(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """Stamp a head that another operator or another version made: its hash says nothing to us."""
    head = _stamped_head(view)
    if head is None or not _of_another_operator(head, knobs):
        return Outcome()
    stamps = {labels.RECREATE_HASH: spec_hash(view.cluster.spec), labels.OPERATOR_VERSION: knobs.version}
    operations = tuple(_set_annotation(name, value) for name, value in stamps.items())
    ref = view.pod_ref(head.name)
    return Outcome((Patch(ref=ref, uid=head.uid, resource_version=head.resource_version, operations=operations),))


def _stamped_head(view: ClusterView) -> Pod | None:
    strategy, head = view.cluster.spec.upgrade_strategy, head_of(view)
    if strategy is None or strategy.type != "Recreate" or head is None or not head.made_from:
        return None
    return head


def _of_another_operator(head: Pod, knobs: ClusterKnobs) -> bool:
    return head.made_by not in ("", knobs.version)


def _set_annotation(name: str, value: str) -> Json:
    path = name.replace("~", "~0").replace("/", "~1")
    return {"op": "add", "path": f"/metadata/annotations/{path}", "value": value}
