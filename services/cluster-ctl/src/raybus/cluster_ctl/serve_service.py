"""The Service in front of Ray Serve, when the cluster asks for it: made once, never changed (contract objects §4.3)."""

from __future__ import annotations

from raybus.api.decision import Create, Note, Why
from raybus.api.reasons import Reason
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build.ports import serve_ports
from raybus.cluster_ctl.build.serve_service import serve_service
from raybus.cluster_ctl.keeping import ref_of
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView


def decide_serve_service(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """Create it if it is missing; a head that declares no port of Serve is said, and lives without (ADR 0111)."""
    cluster = view.cluster
    if cluster.metadata.annotations.get(labels.ENABLE_SERVE_SERVICE) != "true":
        return Outcome()
    if not serve_ports(cluster):
        text = "no serve Service is made: the head's Ray container declares ports, but none called serve or serve-*"
        note = Note(type="Warning", reason=Reason.FAILED_TO_CREATE_SERVICE, action="Create", text=text)
        return Outcome(warnings=(note,))
    body = serve_service(cluster)
    ref = ref_of(body)
    if any(service.name == ref.name for service in view.services):
        return Outcome()
    why = Why(reason=Reason.STARTED, text=f"Creating serve Service {ref.name}.", about=view.ref)
    return Outcome((Create(ref=ref, body=body),), (why,))
