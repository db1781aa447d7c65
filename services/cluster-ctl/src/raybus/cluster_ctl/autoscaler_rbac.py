"""What the Ray autoscaler runs as and may do: made once, never changed (contract objects §5.1, reconcile §6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from raybus.api.decision import Json, Ref, Why
from raybus.api.reasons import Reason
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl.build.autoscaler import is_autoscaling
from raybus.cluster_ctl.build.autoscaler_rbac import own_account, role, role_binding, service_account
from raybus.cluster_ctl.keeping import Words, create_child
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView


class _Made(NamedTuple):
    """`after`: the kind that has to be there first."""

    kind: str
    build: Callable[[RayCluster], Json]
    words: Words
    after: str = ""


_ACCOUNT = _Made(
    "ServiceAccount",
    service_account,
    Words("service account", Reason.CREATED_SERVICE_ACCOUNT, Reason.FAILED_TO_CREATE_SERVICE_ACCOUNT),
)
_RIGHTS = (
    _Made("Role", role, Words("role", Reason.CREATED_ROLE, Reason.FAILED_TO_CREATE_ROLE)),
    _Made(
        "RoleBinding",
        role_binding,
        Words("role binding", Reason.CREATED_ROLE_BINDING, Reason.FAILED_TO_CREATE_ROLE_BINDING),
        after="Role",  # whose rights the API server looks up before it lets somebody hand them on
    ),
)


def decide_autoscaler_rbac(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """Make what is missing; an account that the user names is needed, not made."""
    if not is_autoscaling(view.cluster):
        return Outcome()
    named = named_account(view)
    wanted = _RIGHTS if named is not None else (_ACCOUNT, *_RIGHTS)
    there = {kind for kind, _ in view.children}
    missing = [made for made in wanted if made.kind not in there and (not made.after or made.after in there)]
    text = f"Creating the autoscaler's {', '.join(made.kind for made in missing)}."
    return Outcome(
        tuple(create_child(made.build(view.cluster), made.words) for made in missing),
        (Why(reason=Reason.STARTED, text=text, about=view.ref),) if missing else (),
        needs=(named,) if named is not None else (),
    )


def named_account(view: ClusterView) -> Ref | None:
    """The ServiceAccount that the user has to provide for the autoscaler, None when none is named."""
    name = own_account(view.cluster) if is_autoscaling(view.cluster) else ""
    return Ref("ServiceAccount", view.ref.namespace, name) if name else None
