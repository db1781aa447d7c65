"""The way in to the dashboard from outside: an Ingress that follows the spec, or a Route that is made once (contract
objects §5.2, §5.3). Switched off it stays, as every child does (contract reconcile §26.37)."""

from __future__ import annotations

from raybus.api.decision import Intent, Json, Why
from raybus.api.reasons import Reason
from raybus.cluster_ctl.build.ingress import ingress, route
from raybus.cluster_ctl.children import Child
from raybus.cluster_ctl.keeping import Words, create_child, differing_parts, ref_of, replace_parts
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView

_INGRESS = Words(
    "ingress",
    Reason.CREATED_INGRESS,
    Reason.FAILED_TO_CREATE_INGRESS,
    Reason.UPDATED_INGRESS,
    Reason.FAILED_TO_UPDATE_INGRESS,
)
_ROUTE = Words("route", Reason.CREATED_ROUTE, Reason.FAILED_TO_CREATE_ROUTE)


def decide_ingress(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """Make it, or set it right. A foreign object of its name is refused to us, and the cluster lives without."""
    if not view.cluster.spec.head_group_spec.enable_ingress:
        return Outcome()
    return _route(view) if knobs.openshift_route else _ingress(view)


def _ingress(view: ClusterView) -> Outcome:
    body = ingress(view.cluster)
    name = body["metadata"]["name"]
    there = view.children.get(("Ingress", name))
    if there is None:
        return _told(view, create_child(body, _INGRESS), f"Creating Ingress {name}.")
    body = _with_class_of(there, body)
    parts = differing_parts(there, body)
    if not parts:
        return Outcome()
    text = f"Ingress {name} differs from the spec in {', '.join(parts)}: setting it right."
    return _told(view, replace_parts(there, body, parts, _INGRESS), text)


def _with_class_of(there: Child, body: Json) -> Json:
    """The class that the cluster's defaulting gave is kept while the user asks for none."""
    given = there.spec.get("ingressClassName")
    if not given or "ingressClassName" in body["spec"]:
        return body
    return {**body, "spec": {**body["spec"], "ingressClassName": given}}


def _route(view: ClusterView) -> Outcome:
    body = route(view.cluster)
    ref = ref_of(body)
    if view.is_there(ref) is not False:
        return Outcome(needs=(ref,))
    return _told(view, create_child(body, _ROUTE), f"Creating Route {ref.name}.")._replace(needs=(ref,))


def _told(view: ClusterView, intent: Intent, text: str) -> Outcome:
    return Outcome((intent,), (Why(reason=Reason.STARTED, text=text, about=view.ref),))
