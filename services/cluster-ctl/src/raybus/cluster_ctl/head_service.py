"""The head Service: made once, never changed (contract reconcile §6)."""

from __future__ import annotations

from raybus.api.decision import Create, Ref, Why
from raybus.api.reasons import Reason
from raybus.cluster_ctl.build.head_service import head_service
from raybus.cluster_ctl.outcome import Outcome, created, not_created
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView


def decide_head_service(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """Create it unless a Service with its labels is there."""
    if view.head_services:
        return Outcome()
    body = head_service(view.cluster, knobs)
    name, namespace = body["metadata"]["name"], view.cluster.metadata.namespace
    create = Create(
        ref=Ref("Service", namespace, name),
        body=body,
        done=created(Reason.CREATED_SERVICE, f"Created service {namespace}/{name}"),
        failed=not_created(Reason.FAILED_TO_CREATE_SERVICE, f"Failed to create service {namespace}/{name}"),
    )
    return Outcome((create,), (Why(reason=Reason.STARTED, text=f"Creating head Service {name}.", about=view.ref),))
