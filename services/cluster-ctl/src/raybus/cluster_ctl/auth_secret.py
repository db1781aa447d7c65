"""The Secret with the cluster's token: its value is never seen here (contract objects §5.6)."""

from __future__ import annotations

from raybus.api.decision import GenerateSecret, Why
from raybus.api.reasons import Reason
from raybus.cluster_ctl.build.auth import KEY, auth_secret, secret_is_ours
from raybus.cluster_ctl.keeping import ref_of
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView


def decide_auth_secret(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """Ask for the Secret once it is known not to be there."""
    if not secret_is_ours(view.cluster):
        return Outcome()
    body = auth_secret(view.cluster)
    ref = ref_of(body)
    if view.is_there(ref) is not False:
        return Outcome(needs=(ref,))
    text = f"Creating Secret {ref.name} with a new authentication token."
    generate = GenerateSecret(ref=ref, body=body, keys=(KEY,))
    return Outcome((generate,), (Why(reason=Reason.STARTED, text=text, about=view.ref),), needs=(ref,))
