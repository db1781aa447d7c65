"""Requests that change something: built here, used by the applier only (import rule, design §5)."""

import msgspec

from raybus.api.decision import Json, Ref
from raybus.api.kinds import BY_KIND
from raybus.kube.port import Request
from raybus.kube.request import path, path_of

FIELD_MANAGER = "raybus"
"""Who owns the fields of what Raybus applies, as `kubectl get --show-managed-fields` shows it."""

_WRITE = {"fieldManager": FIELD_MANAGER, "fieldValidation": "Ignore"}
# The objects are built from typed structures: validating field names again costs the API server time (issue 5).


def create(kind: str, namespace: str, body: bytes) -> Request:
    """POST an encoded object. 409 AlreadyExists when its name is taken."""
    return Request(method="POST", path=path(BY_KIND[kind], namespace), query=_WRITE, body=body)


def delete(ref: Ref, uid: str, propagation: str = "Background") -> Request:
    """DELETE exactly the object with this UID: 409 Conflict when another one bears the name now (design §3)."""
    options = {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": uid},
        "propagationPolicy": propagation,
    }
    return Request(method="DELETE", path=path_of(ref), body=msgspec.json.encode(options))


def put_status(ref: Ref, uid: str, resource_version: str, status: Json) -> Request:
    """Replace the whole status, with a minimal body (a status PUT takes nothing else from it; issue 5: 7 instead of
    11 ms of kube-apiserver). 409 Conflict unless the object still has this UID and resourceVersion."""
    body = {
        **_identity(ref),
        "metadata": {
            "name": ref.name,
            "namespace": ref.namespace,
            "uid": uid,
            "resourceVersion": resource_version,
        },
        "status": status,
    }
    return Request(method="PUT", path=path_of(ref, "status"), query=_WRITE, body=msgspec.json.encode(body))


def json_patch(ref: Ref, uid: str, resource_version: str, operations: tuple[Json, ...]) -> Request:
    """RFC 6902 operations; 409 Conflict unless the object still has this UID and resourceVersion."""
    guard = (
        {"op": "replace", "path": "/metadata/uid", "value": uid},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": resource_version},
    )
    return Request(
        method="PATCH",
        path=path_of(ref),
        query=_WRITE,
        body=msgspec.json.encode(guard + operations),
        content_type="application/json-patch+json",
    )


def merge_patch(ref: Ref, uid: str, resource_version: str, patch: Json) -> Request:
    """RFC 7386 merge of `patch`; 409 Conflict unless the object still has this UID and resourceVersion."""
    metadata = {**patch.get("metadata", {}), "uid": uid, "resourceVersion": resource_version}
    return Request(
        method="PATCH",
        path=path_of(ref),
        query=_WRITE,
        body=msgspec.json.encode({**patch, "metadata": metadata}),
        content_type="application/merge-patch+json",
    )


def observed_again(event: Ref, at: str, times: int) -> Request:
    """Say of an Event that it has been so `times` times, at last `at` (RFC 3339 with microseconds). 404 when it has
    expired. Not fenced: Events have names of their content."""
    series = {"count": times, "lastObservedTime": at}
    return Request(
        method="PATCH",
        path=path_of(event),
        query=_WRITE,
        body=msgspec.json.encode({"series": series}),
        content_type="application/merge-patch+json",
    )


def apply(ref: Ref, body: Json) -> Request:
    """Server-side apply of exactly what we own; takes over fields that someone else set to another value."""
    named = {**_identity(ref), **body}
    named["metadata"] = {**body.get("metadata", {}), "name": ref.name, "namespace": ref.namespace}
    return Request(
        method="PATCH",
        path=path_of(ref),
        query={**_WRITE, "force": "true"},
        body=msgspec.json.encode(named),
        content_type="application/apply-patch+yaml",
    )


def _identity(ref: Ref) -> Json:
    kind = BY_KIND[ref.kind]
    return {"apiVersion": kind.api_version, "kind": kind.api_kind}
