"""What kube-controller-manager does for Raybus's objects: garbage collection and Jobs, on the API server in memory."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

from raybus.api.decision import Json
from raybus.api.kinds import BY_KIND
from raybus.testkit.api_errors import ApiError
from raybus.testkit.api_store import Change, Key
from raybus.testkit.api_verbs import FOREGROUND
from raybus.testkit.fake_api import FakeApi

Delay = Callable[[str], float]
"""How long, in seconds, something of that name takes this time."""


def later(delay: float, do: Callable[..., None], *arguments: Any) -> None:
    """Run something that belongs to no service."""
    asyncio.get_running_loop().call_later(delay, do, *arguments, context=Context())


class GarbageCollector:
    """Deletes what has owners none of which exists any more; ends a foreground deletion once its dependents went."""

    def __init__(self, api: FakeApi, delay: Delay) -> None:
        self._api, self._delay = api, delay
        self._dependents: dict[str, dict[str, None]] = {}
        """Owner's UID -> UIDs of what it owns."""
        api.store.observers.append(self._see)

    def _see(self, change: Change) -> None:
        obj = change.after or change.before
        assert obj is not None
        uid = obj["metadata"]["uid"]
        for owner in _owners(obj):
            if change.after is not None:
                self._dependents.setdefault(owner, {})[uid] = None
                if change.before is None and owner not in self._api.store.uids:
                    later(self._delay("gc"), self._collect, uid)
            else:
                self._dependents.get(owner, {}).pop(uid, None)
                later(0.0, self._end_foreground, owner)
        if change.after is None:
            for dependent in self._dependents.pop(uid, {}):
                later(self._delay("gc"), self._collect, dependent)
        elif "deletionTimestamp" in obj["metadata"] and FOREGROUND in obj["metadata"].get("finalizers", ()):
            for dependent in self._dependents.get(uid, {}):
                later(self._delay("gc"), self._delete, dependent)
            later(0.0, self._end_foreground, uid)

    def _collect(self, uid: str) -> None:
        found = self._find(uid)
        if found is not None and not any(owner in self._api.store.uids for owner in _owners(found)):
            self._delete(uid)

    def _delete(self, uid: str) -> None:
        found = self._find(uid)
        if found is None or "deletionTimestamp" in found["metadata"]:
            return
        kind, key = self._api.store.uids[uid]
        self._api.verbs.delete(BY_KIND[kind], key, {"preconditions": {"uid": uid}})

    def _end_foreground(self, owner: str) -> None:
        found = self._find(owner)
        if found is None or self._dependents.get(owner):
            return
        meta = found["metadata"]
        if "deletionTimestamp" in meta and FOREGROUND in meta.get("finalizers", ()):
            kind, key = self._api.store.uids[owner]
            rest = [name for name in meta["finalizers"] if name != FOREGROUND]
            self._api.verbs.update(BY_KIND[kind], key, {**found, "metadata": {**meta, "finalizers": rest}})

    def _find(self, uid: str) -> Json | None:
        where = self._api.store.uids.get(uid)
        return self._api.store.get(*where) if where else None


class JobController:
    """Runs the pods of Jobs with one completion: makes one, another one after a failure (within `backoffLimit`), and
    writes the conditions that the submitter's owner reads."""

    def __init__(self, api: FakeApi, delay: Delay) -> None:
        self._api, self._delay = api, delay
        api.store.observers.append(self._see)

    def _see(self, change: Change) -> None:
        if change.kind == "Job" and change.before is None:
            later(self._delay("job"), self._sync, change.key)
        if change.kind == "Pod":
            pod = change.after or change.before
            assert pod is not None
            owner = pod["metadata"].get("labels", {}).get("batch.kubernetes.io/job-name")
            if owner and _phase(change.before) != _phase(change.after):
                later(self._delay("job"), self._sync, (change.key[0], owner))

    def _sync(self, key: Key) -> None:
        job = self._api.store.get("Job", key)
        if job is None or "deletionTimestamp" in job["metadata"] or _finished(job):
            return
        uid = job["metadata"]["uid"]
        pods = [pod for pod in self._api.store.all("Pod", key[0]) if uid in _owners(pod)]
        phases = [_phase(pod) for pod in pods if "deletionTimestamp" not in pod["metadata"]]
        old = job.get("status") or {}
        ended = {pod["metadata"]["uid"] for pod in pods if _phase(pod) == "Failed"} | set(old.get("uncounted", ()))
        status: Json = {"startTime": self._api.store.timestamp(), **old, "uncounted": sorted(ended)}
        status |= {"failed": len(ended), "active": sum(phase in ("Pending", "Running") for phase in phases)}
        if "Succeeded" in phases:
            now = self._api.store.timestamp()
            conditions = [_condition("SuccessCriteriaMet", "CompletionsReached", now), _condition("Complete", "", now)]
            status |= {"succeeded": 1, "active": 0, "completionTime": now, "conditions": conditions}
        elif len(ended) > job["spec"]["backoffLimit"]:
            now = self._api.store.timestamp()
            text = "Job has reached the specified backoff limit"
            conditions = [
                _condition("FailureTarget", "BackoffLimitExceeded", now, text),
                _condition("Failed", "BackoffLimitExceeded", now, text),
            ]
            status |= {"active": 0, "conditions": conditions}
        elif not status["active"]:
            self._start(job, len(ended))
            status["active"] = 1
        self._api.store.put("Job", key, {**job, "status": status})

    def _start(self, job: Json, failures: int) -> None:
        meta, template = job["metadata"], job["spec"]["template"]
        labels = {
            **(template.get("metadata") or {}).get("labels", {}),
            "batch.kubernetes.io/job-name": meta["name"],
            "batch.kubernetes.io/controller-uid": meta["uid"],
            "job-name": meta["name"],
        }
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": meta["name"], "uid": meta["uid"], "controller": True}
        pod = {
            "metadata": {
                "generateName": f"{meta['name']}-",
                "labels": labels,
                "annotations": (template.get("metadata") or {}).get("annotations", {}),
                "ownerReferences": [{**owner, "blockOwnerDeletion": True}],
            },
            "spec": template["spec"],
        }
        try:
            self._api.verbs.create(BY_KIND["Pod"], meta["namespace"], pod)
        except ApiError:
            # A quota, for example: tried again like the real controller does.
            later(5.0 * (failures + 1), self._sync, (meta["namespace"], meta["name"]))


def _owners(obj: Json) -> list[str]:
    return [owner["uid"] for owner in obj["metadata"].get("ownerReferences") or ()]


def _phase(pod: Json | None) -> str:
    return str((pod or {}).get("status", {}).get("phase", ""))


def _finished(job: Json) -> bool:
    return any(c["type"] in ("Complete", "Failed") for c in (job.get("status") or {}).get("conditions", ()))


def _condition(kind: str, reason: str, now: str, message: str = "") -> Json:
    return {
        "type": kind,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastTransitionTime": now,
        "lastProbeTime": now,
    }
