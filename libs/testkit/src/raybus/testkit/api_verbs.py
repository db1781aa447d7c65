"""What each verb of the API server in memory does to the store: create, get, delete, update, patch."""

from collections.abc import Callable, Mapping
from typing import Any

from raybus.api.decision import Json
from raybus.api.kinds import Kind
from raybus.testkit import api_errors as errors
from raybus.testkit.api_kinds import ANSWER_OBJECT, CUSTOM, WITH_GENERATION, WITH_STATUS, default, frozen, problem
from raybus.testkit.api_patches import PatchFailed, apply_patch, json_patch, merge_patch
from raybus.testkit.api_store import Key, Store

FOREGROUND = "foregroundDeletion"
_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


class Verbs:
    """`quota`: how many pods a namespace may hold (all others: any number)."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.quota: dict[str, int] = {}

    def get(self, kind: Kind, key: Key) -> Json:
        """Raises ApiError 404."""
        found = self.store.get(kind.kind, key)
        if found is None:
            raise errors.not_found(kind, key[1])
        return found

    def create(self, kind: Kind, namespace: str, body: Json) -> Json:
        """Raises ApiError 403 (quota), 409 AlreadyExists, 422."""
        given = body.get("metadata") or {}
        uid = self.store.new_uid()
        name = given.get("name") or self._generated(given.get("generateName", ""), uid)
        meta = {key: value for key, value in given.items() if key not in ("managedFields", "resourceVersion")}
        meta |= {"name": name, "namespace": namespace, "uid": uid, "creationTimestamp": self.store.timestamp()}
        meta.pop("deletionTimestamp", None)
        if kind.kind in WITH_GENERATION:
            meta["generation"] = 1
        obj = default(kind, {**body, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta})
        if kind.kind in WITH_STATUS:
            obj.pop("status", None)
        if kind.kind == "Pod":
            obj["status"] = {"phase": "Pending"}
        why = problem(kind, obj)
        if why:
            raise errors.invalid(kind, name, why)
        if self.store.get(kind.kind, (namespace, name)) is not None:
            raise errors.already_exists(kind, name)
        self._check_quota(kind, namespace, name)
        return self.store.put(kind.kind, (namespace, name), obj)

    def delete(self, kind: Kind, key: Key, options: Mapping[str, Any]) -> Json:
        """The object, as long as it lives on; else it or a Status, by kind. Raises ApiError 404, 409."""
        found = self.get(kind, key)
        meta = found["metadata"]
        wanted = (options.get("preconditions") or {}).get("uid", meta["uid"])
        if wanted != meta["uid"]:
            raise errors.uid_conflict(kind, key[1], wanted, meta["uid"])
        finalizers = list(meta.get("finalizers") or ())
        if options.get("propagationPolicy") == "Foreground" and FOREGROUND not in finalizers:
            finalizers.append(FOREGROUND)
        grace = _grace(found, options) if kind.kind == "Pod" else 0
        if not finalizers and grace == 0:
            last = self.store.remove(kind.kind, key)
            return last if kind.kind in ANSWER_OBJECT else _success(kind, last)
        marked = {**meta, "finalizers": finalizers} if finalizers else dict(meta)
        if "deletionTimestamp" not in meta:
            marked |= {"deletionTimestamp": self.store.timestamp(), "deletionGracePeriodSeconds": grace}
            if kind.kind in CUSTOM:
                marked["generation"] = meta.get("generation", 0) + 1
        elif kind.kind == "Pod" and grace < meta["deletionGracePeriodSeconds"]:
            marked["deletionGracePeriodSeconds"] = grace
        return self.store.put(kind.kind, key, {**found, "metadata": marked})

    def put_status(self, kind: Kind, key: Key, body: Json) -> Json:
        """Replace the status alone. Raises ApiError 404, 409."""
        found = self.get(kind, key)
        _check_identity(kind, found, body.get("metadata") or {})
        after = {**found, "status": body["status"]} if "status" in body else _without(found, "status")
        return self.store.put(kind.kind, key, after)

    def json_patch(self, kind: Kind, key: Key, operations: list[Json]) -> Json:
        """Raises ApiError 404, 409, 422."""
        return self._patch(kind, key, lambda found: json_patch(found, operations))

    def merge_patch(self, kind: Kind, key: Key, patch: Json) -> Json:
        """Raises ApiError 404, 409, 422."""
        return self._patch(kind, key, lambda found: merge_patch(found, patch))

    def apply(self, kind: Kind, key: Key, body: Json) -> tuple[Json, bool]:
        """Server-side apply: (object, whether it was created). Raises ApiError 409, 422."""
        if self.store.get(kind.kind, key) is None:
            return self.create(kind, key[0], body), True
        return self._patch(kind, key, lambda found: apply_patch(found, body)), False

    def update(self, kind: Kind, key: Key, after: Json) -> Json:
        """Store a changed main resource. An object that is being deleted goes with its last finalizer.

        Raises ApiError 409, 422.
        """
        before = self.get(kind, key)
        old, new = before["metadata"], dict(after["metadata"])
        _check_identity(kind, before, new)
        deleting = "deletionTimestamp" in old
        added = set(new.get("finalizers") or ()) - set(old.get("finalizers") or ())
        if deleting and added:
            why = f"metadata.finalizers: Forbidden: no new finalizers can be added: {sorted(added)}"
            raise errors.invalid(kind, key[1], why)
        for field in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
            new.pop(field, None)
            if field in old:
                new[field] = old[field]
        if not new.get("finalizers"):
            new.pop("finalizers", None)
        obj = default(kind, {**after, "metadata": new})
        if kind.kind in WITH_STATUS:
            obj = {**obj, "status": before["status"]} if "status" in before else _without(obj, "status")
        why = problem(kind, obj) or frozen(kind, before, obj)
        if why:
            raise errors.invalid(kind, key[1], why)
        if kind.kind in WITH_GENERATION and obj.get("spec") != before.get("spec"):
            new["generation"] = old.get("generation", 0) + 1
        if deleting and not new.get("finalizers") and not old.get("deletionGracePeriodSeconds"):
            self.store.remove(kind.kind, key)
            return obj
        return self.store.put(kind.kind, key, obj)

    def _patch(self, kind: Kind, key: Key, change: Callable[[Json], Json]) -> Json:
        found = self.get(kind, key)
        try:
            after = change(found)
        except PatchFailed as error:
            text = f"the server rejected our request due to an error in our request: {error}"
            raise errors.ApiError(422, "Invalid", text) from error
        return self.update(kind, key, after)

    def _generated(self, prefix: str, uid: str) -> str:
        number, letters = int(uid.replace("-", ""), 16), ""
        for _ in range(5 if prefix else 0):
            number, rest = divmod(number, len(_SUFFIX))
            letters += _SUFFIX[rest]
        return prefix + letters

    def _check_quota(self, kind: Kind, namespace: str, name: str) -> None:
        if kind.kind != "Pod" or namespace not in self.quota:
            return
        limit = self.quota[namespace]
        used = sum(1 for key in self.store.objects.get("Pod", ()) if key[0] == namespace)
        if used >= limit:
            text = f"exceeded quota: pods, requested: pods=1, used: pods={used}, limited: pods={limit}"
            raise errors.ApiError(403, "Forbidden", f'pods "{name}" is forbidden: {text}')


def _check_identity(kind: Kind, found: Json, given: Json) -> None:
    meta = found["metadata"]
    if given.get("uid", meta["uid"]) != meta["uid"]:
        raise errors.uid_conflict(kind, meta["name"], given["uid"], meta["uid"])
    if given.get("resourceVersion", meta["resourceVersion"]) != meta["resourceVersion"]:
        raise errors.version_conflict(kind, meta["name"])


def _grace(pod: Json, options: Mapping[str, Any]) -> int:
    """A pod that no node runs, or that has ended, goes at once."""
    if not pod["spec"].get("nodeName") or pod.get("status", {}).get("phase") in ("Succeeded", "Failed"):
        return 0
    return int(options.get("gracePeriodSeconds", pod["spec"].get("terminationGracePeriodSeconds", 30)))


def _success(kind: Kind, last: Json) -> Json:
    meta = last["metadata"]
    details = {"name": meta["name"], "group": kind.group, "kind": kind.plural, "uid": meta["uid"]}
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}


def _without(obj: Json, field: str) -> Json:
    return {key: value for key, value in obj.items() if key != field}
