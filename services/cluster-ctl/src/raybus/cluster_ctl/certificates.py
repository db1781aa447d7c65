"""Mutual TLS by cert-manager: the objects it works on, and when pods may start (contract objects §5.5)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from raybus.api.decision import Apply, Create, CreatePods, Intent, Json, Note, Patch, Ref, Why
from raybus.api.reasons import Reason
from raybus.api.times import Instant, parse_time
from raybus.api.v1 import ConditionStatus
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build import tls
from raybus.cluster_ctl.build.certificates import (
    GROUP,
    ca_certificate,
    ca_issuer,
    ca_secret_name,
    leaf_certificate,
    leaf_name,
    root_issuer,
)
from raybus.cluster_ctl.build.head_address import head_address
from raybus.cluster_ctl.children import Child
from raybus.cluster_ctl.keeping import differing_parts, place_of, ref_of
from raybus.cluster_ctl.outcome import Outcome
from raybus.cluster_ctl.pods import Pod
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.cluster_ctl.view import ClusterView

REPORTER = "raycluster-mtls-controller"
EXPIRES_SOON = 24 * 3600.0
"""Seconds before the end of a certificate from which on it is said: cert-manager should have renewed it long ago."""
_KEYS = frozenset({"tls.crt", "tls.key", "ca.crt"})
_LEAVES = (labels.HEAD, labels.WORKER)
_ENDED = ("Succeeded", "Failed")
_WAITING = "Waiting for cert-manager to issue mTLS certificates"


def decide_certificates(view: ClusterView, knobs: ClusterKnobs) -> Outcome:
    """Make issuers and certificates, and keep the pods' addresses in theirs. While they are not issued `status.reason`
    says so; with the decision that finds them issued the Secrets get their owners (ADR 0112)."""
    if not tls.is_on(view.cluster):
        return Outcome()
    intents = (*_authority(view), *_leaves(view, knobs))
    needs = tuple(ref for ref, _ in _secrets(view))
    if not is_ready(view):
        note = _note("Normal", Reason.MTLS_CERTS_NOT_READY, "Reconcile", _WAITING)
        return Outcome(intents, (_why(view),), warnings=(note,), needs=needs)
    if _WAITING not in view.cluster.status.reason:
        return Outcome(intents, needs=needs)
    text = "mTLS PKI is ready: CA, head, and worker certificates issued"
    told = _note("Normal", Reason.MTLS_PKI_READY, "Reconcile", text)
    return Outcome((*intents, *_adoptions(view)), needs=needs, notes=(told,))


def is_ready(view: ClusterView) -> bool:
    """Whether pods may start: both certificates are issued as they are now, and their Secrets are complete."""
    for node_type in _LEAVES:
        certificate = view.children.get(("Certificate", leaf_name(view.cluster, node_type)))
        secret = view.presences.get(_secret(view, tls.secret_name(view.cluster, node_type)))
        if certificate is None or not _is_issued(certificate) or secret is None or not set(secret.keys) >= _KEYS:
            return False
    return True


def without_creates(view: ClusterView, wanted: Outcome) -> Outcome:
    """`wanted` without new pods, as long as there is no certificate for them; removals go on."""
    if not tls.is_on(view.cluster) or is_ready(view):
        return wanted
    return wanted._replace(intents=tuple(intent for intent in wanted.intents if not isinstance(intent, CreatePods)))


def warn_of_expiry(view: ClusterView, now: Instant) -> Outcome:
    """Certificates that end soon, and when to look again."""
    if not tls.is_on(view.cluster):
        return Outcome()
    warnings, times = [], []
    for node_type in _LEAVES:
        certificate = view.children.get(("Certificate", leaf_name(view.cluster, node_type)))
        ends = certificate.status.get("notAfter") if certificate is not None else None
        if certificate is None or not ends:
            continue
        if (warns_at := parse_time(ends) - EXPIRES_SOON) > now:
            times.append(Instant(warns_at))
            continue
        text = f"Certificate {view.ref.namespace}/{certificate.name} expires at {ends} and was not renewed"
        warnings.append(_note("Warning", Reason.MTLS_CERTIFICATE_EXPIRING_SOON, "Reconcile", text))
    return Outcome(warnings=tuple(warnings), wake_at=min(times, default=None))


def _authority(view: ClusterView) -> Iterator[Create]:
    """Made once, never changed."""
    for build in (root_issuer, ca_certificate, ca_issuer):
        body = build(view.cluster)
        if (body["kind"], body["metadata"]["name"]) not in view.children:
            yield _create(body)


def _leaves(view: ClusterView, knobs: ClusterKnobs) -> Iterator[Intent]:
    names = {labels.HEAD: (head_address(view.cluster, knobs.cluster_domain).fqdn,), labels.WORKER: ()}
    pods = {labels.HEAD: view.heads, labels.WORKER: view.workers}
    for node_type in _LEAVES:
        addresses = [pod.ip for pod in pods[node_type] if _counts(pod)]
        body = leaf_certificate(view.cluster, node_type, names[node_type], addresses)
        there = view.children.get(("Certificate", body["metadata"]["name"]))
        if there is None:
            yield _create(body)
        elif operations := tuple(_changes(there, body)):
            yield _update(there, body, node_type, operations)


def _counts(pod: Pod) -> bool:
    return bool(pod.ip) and not pod.deleting and pod.phase not in _ENDED


def _changes(there: Child, body: Json) -> Iterator[Json]:
    """What of labels, names and addresses has to be replaced; their order does not matter."""
    for field in ("dnsNames", "ipAddresses"):
        if set(there.spec.get(field) or ()) != set(body["spec"][field]):
            yield {"op": "add", "path": f"/spec/{field}", "value": body["spec"][field]}
    if "labels" in differing_parts(there, {"metadata": body["metadata"]}):
        yield {"op": "add", "path": "/metadata/labels", "value": {**there.labels, **body["metadata"]["labels"]}}


def _create(body: Json) -> Create:
    text = f"Failed to create {body['kind']} {place_of(body)}"
    failed = _note("Warning", Reason.MTLS_FAILED_TO_RECONCILE, "Reconcile", text)
    return Create(ref=ref_of(body), body=body, failed=failed)


def _update(there: Child, body: Json, node_type: str, operations: tuple[Json, ...]) -> Patch:
    addresses = " ".join(body["spec"]["ipAddresses"])
    text = f"Updated {node_type} certificate SANs (IPs: [{addresses}])"
    failed = f"Failed to update Certificate {place_of(body)}"
    return Patch(
        ref=ref_of(body),
        uid=there.uid,
        resource_version=there.version,
        operations=operations,
        done=_note("Normal", Reason.MTLS_CERTIFICATES_UPDATED, "Update", text),
        failed=_note("Warning", Reason.MTLS_FAILED_TO_RECONCILE, "Reconcile", failed),
    )


def _secrets(view: ClusterView) -> Iterator[tuple[Ref, str]]:
    """(Secret, name of its Certificate) of authority, heads and workers."""
    cluster = view.cluster
    yield _secret(view, ca_secret_name(cluster)), ca_certificate(cluster)["metadata"]["name"]
    for node_type in _LEAVES:
        yield _secret(view, tls.secret_name(cluster, node_type)), leaf_name(cluster, node_type)


def _adoptions(view: ClusterView) -> Iterator[Apply]:
    """Each Secret goes with its Certificate. The type is named too, so that a Secret that has vanished meanwhile is not
    made anew without its keys: the API server refuses that."""
    for ref, name in _secrets(view):
        certificate = view.children.get(("Certificate", name))
        if certificate is None or not view.is_there(ref):
            continue
        owner = {"apiVersion": f"{GROUP}/v1", "kind": "Certificate", "name": name, "uid": certificate.uid}
        body = {"type": "kubernetes.io/tls", "metadata": {"ownerReferences": [owner]}}
        yield Apply(ref=ref, body=body)


def _secret(view: ClusterView, name: str) -> Ref:
    return Ref("Secret", view.ref.namespace, name)


def _is_issued(certificate: Child) -> bool:
    """Ready, and for what the certificate says now."""
    return any(
        condition.get("type") == "Ready"
        and condition.get("status") == ConditionStatus.TRUE
        and condition.get("observedGeneration") == certificate.generation
        for condition in certificate.status.get("conditions") or ()
    )


def _why(view: ClusterView) -> Why:
    step = f"kubectl describe certificate -n {view.ref.namespace}; cert-manager has to be installed and running."
    return Why(reason=Reason.MTLS_CERTS_NOT_READY, text=f"{_WAITING}.", about=view.ref, next_step=step)


def _note(kind: Literal["Normal", "Warning"], reason: Reason, action: str, text: str) -> Note:
    return Note(type=kind, reason=reason, action=action, text=text, reporter=REPORTER)
