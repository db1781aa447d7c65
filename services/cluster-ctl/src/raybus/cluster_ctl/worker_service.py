"""The headless Service of groups that span hosts: made once, never changed (contract objects §4.4)."""

from __future__ import annotations

from raybus.api.decision import Create, Ref, Why
from raybus.api.reasons import Reason
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build.worker_service import worker_service
from raybus.cluster_ctl.outcome import Outcome, created, not_created
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView


def decide_worker_service(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """Create it when a group spans hosts, unless a Service with its label is there."""
    cluster = view.cluster
    wanted = any(group.num_of_hosts > 1 for group in cluster.spec.worker_group_specs)
    there = any(service.labels.get(labels.WORKER_SERVICE) == cluster.metadata.name for service in view.services)
    if there or not wanted:
        return Outcome()
    body = worker_service(cluster)
    name, namespace = body["metadata"]["name"], cluster.metadata.namespace
    create = Create(
        ref=Ref("Service", namespace, name),
        body=body,
        done=created(Reason.CREATED_SERVICE, f"Created service {namespace}/{name}"),
        failed=not_created(Reason.FAILED_TO_CREATE_SERVICE, f"Failed to create service {namespace}/{name}"),
    )
    return Outcome((create,), (Why(reason=Reason.STARTED, text=f"Creating Service {name}.", about=view.ref),))
