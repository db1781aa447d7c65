"""Scheduler and kubelet for pods of the API server in memory: Pending, Running, Ready, ended, gone."""

from collections.abc import Callable, Mapping
from typing import Any

from raybus.api.decision import Json
from raybus.api.kinds import BY_KIND
from raybus.testkit.api_controllers import Delay, later
from raybus.testkit.api_store import Change
from raybus.testkit.fake_api import FakeApi


class Kubelet:
    """`run`: called with each pod whose containers have started; it may end the pod later by `end`."""

    def __init__(self, api: FakeApi, delay: Delay, run: Callable[[Json], None] = lambda _: None) -> None:
        self._api, self._delay, self.run = api, delay, run
        self._addresses = 0
        self.stuck: set[str] = set()
        """UIDs of pods that never get a node."""
        api.store.observers.append(self._see)

    def pod(self, uid: str) -> Json | None:
        """The pod with this UID as long as it exists."""
        where = self._api.store.uids.get(uid)
        return self._api.store.get(*where) if where else None

    def fail(self, uid: str, reason: str = "Evicted") -> None:
        """Its node is gone, or it was evicted: the pod ends as Failed."""
        pod = self.pod(uid)
        if pod is not None and _phase(pod) in ("Pending", "Running"):
            status = {**pod["status"], "phase": "Failed", "reason": reason, "message": f"the pod was {reason.lower()}"}
            self._write(pod, {**status, "conditions": _conditions(pod, ready=False, now=self._api.store.timestamp())})

    def end(self, uid: str, code: int) -> None:
        """Its main container exits; a pod that is to be restarted becomes unready for a while, any other ends."""
        pod = self.pod(uid)
        if pod is None or _phase(pod) != "Running":
            return
        if pod["spec"]["restartPolicy"] == "Always":
            self.unready(uid)
            later(self._delay("restart"), self._ready, uid)
            return
        state = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
        self._write(
            pod,
            {
                **pod["status"],
                "phase": "Succeeded" if code == 0 else "Failed",
                "conditions": _conditions(pod, ready=False, now=self._api.store.timestamp()),
                "containerStatuses": _containers(pod, ready=False, state=state),
            },
        )

    def unready(self, uid: str) -> None:
        """Its readiness probe fails."""
        self._set_ready(uid, False)

    def _see(self, change: Change) -> None:
        if change.kind != "Pod" or change.after is None:
            return
        meta = change.after["metadata"]
        uid = meta["uid"]
        if change.before is None:
            later(self._delay("schedule"), self._schedule, uid)
        elif "deletionTimestamp" in meta and "deletionTimestamp" not in change.before["metadata"]:
            later(self._delay("terminate"), self._finish, uid)

    def _schedule(self, uid: str) -> None:
        pod = self.pod(uid)
        if pod is None or uid in self.stuck or pod["spec"].get("nodeName"):
            return
        self._addresses += 1
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        now = self._api.store.timestamp()
        bound = {**pod, "spec": {**pod["spec"], "nodeName": f"node-{self._addresses % 3}"}}
        bound["status"] = {**pod["status"], "conditions": [_condition("PodScheduled", True, now)]}
        self._api.store.put("Pod", key, bound)
        later(self._delay("start"), self._start, uid, f"10.1.{self._addresses // 250}.{self._addresses % 250 + 1}")

    def _start(self, uid: str, address: str) -> None:
        pod = self.pod(uid)
        if pod is None or _phase(pod) != "Pending" or "deletionTimestamp" in pod["metadata"]:
            return
        now = self._api.store.timestamp()
        state = {"running": {"startedAt": now}}
        status = {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}], "hostIP": "10.0.0.1"}
        status |= {"startTime": now, "containerStatuses": _containers(pod, ready=False, state=state)}
        self._write(pod, {**status, "conditions": _conditions(pod, ready=False, now=now)})
        later(self._delay("ready"), self._ready, uid)
        self.run(pod)

    def _ready(self, uid: str) -> None:
        self._set_ready(uid, True)

    def _set_ready(self, uid: str, ready: bool) -> None:
        pod = self.pod(uid)
        if pod is None or _phase(pod) != "Running":
            return
        now = self._api.store.timestamp()
        state = {"running": {"startedAt": now}}
        conditions, containers = _conditions(pod, ready=ready, now=now), _containers(pod, ready=ready, state=state)
        self._write(pod, {**pod["status"], "conditions": conditions, "containerStatuses": containers})

    def _finish(self, uid: str) -> None:
        if self.pod(uid) is not None:
            kind, key = self._api.store.uids[uid]
            self._api.verbs.delete(BY_KIND[kind], key, {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}})

    def _write(self, pod: Json, status: Mapping[str, Any]) -> None:
        key = (pod["metadata"]["namespace"], pod["metadata"]["name"])
        self._api.store.put("Pod", key, {**pod, "status": dict(status)})


def is_ready(pod: Json) -> bool:
    """Whether its Ready condition is True."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)


def _phase(pod: Json) -> str:
    return str(pod.get("status", {}).get("phase", ""))


def _condition(kind: str, holds: bool, now: str) -> Json:
    return {"type": kind, "status": "True" if holds else "False", "lastTransitionTime": now, "lastProbeTime": None}


def _conditions(pod: Json, *, ready: bool, now: str) -> list[Json]:
    return [
        _condition("Initialized", True, now),
        _condition("Ready", ready, now),
        _condition("ContainersReady", ready, now),
        _condition("PodScheduled", True, now),
    ]


def _containers(pod: Json, *, ready: bool, state: Json) -> list[Json]:
    return [
        {
            "name": c["name"],
            "image": c.get("image", ""),
            "imageID": "",
            "ready": ready,
            "restartCount": 0,
            "state": state,
        }
        for c in pod["spec"]["containers"]
    ]
