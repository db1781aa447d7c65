"""A RayJob `n/demo` and what surrounds it, as data: tests change a field or two and look at the decision."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import msgspec

from raybus.api import subjects
from raybus.api.decision import Decision, Ref
from raybus.api.messages import Fact, JobFact, Refusal, Result
from raybus.api.times import Instant, format_time, parse_time
from raybus.api.v1 import RayJob
from raybus.api.view import Entry, View
from raybus.job_ctl.controller import controller
from raybus.job_ctl.gather import JobView
from raybus.job_ctl.settings import JobKnobs
from raybus.testkit.refused_jobs import CLUSTER_SPEC, HEAD_TEMPLATE, spec

__all__ = ["CLUSTER_SPEC", "HEAD_TEMPLATE", "spec"]

Json = dict[str, Any]

START = parse_time("2026-01-01T00:00:00Z")
CLUSTER, HEAD, HEAD_UID, JOB_ID = "demo-ccccc", "demo-ccccc-head-aaaaa", "uid-head-a", "demo-jjjjj"
URL = f"{CLUSTER}-head-svc.n.svc.cluster.local:8265"


def at(seconds: float) -> Instant:
    """`seconds` after the start of the attempt."""
    return Instant(START + seconds)


def rfc(seconds: float) -> str:
    """The same as text on the wire."""
    return format_time(at(seconds))


def owned_by(uid: str) -> list[Json]:
    """Owner references of a child."""
    return [{"apiVersion": "v1", "kind": "Any", "name": "any", "uid": uid, "controller": True}]


def rayjob(name: str = "demo", status: Json | None = None, **fields: Any) -> RayJob:
    """A typed RayJob for tests of builders and validation."""
    raw = {"metadata": {"name": name, "namespace": "n"}, "spec": spec(**fields), "status": status or {}}
    return msgspec.convert(raw, RayJob)


def condition(kind: str, status: str = "True", reason: str = "", message: str = "", seconds: float = 0.0) -> Json:
    """A condition of a pod or Job."""
    stamp = rfc(seconds)
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": stamp}


@dataclass
class JobWorld:
    """Everything in one RayJob's view. `objects`: (kind token, name) -> raw object."""

    spec: Json = field(default_factory=spec)
    status: Json = field(default_factory=dict)
    meta: Json = field(default_factory=dict)
    objects: dict[tuple[str, str], Json] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    refusals: tuple[Refusal, ...] = ()
    knobs: JobKnobs = field(default_factory=JobKnobs)

    @property
    def view(self) -> View:
        """The view as the runtime would hand it over."""
        job = controller(self.knobs)
        entries = {
            key: Entry(value=job.decoders[key[0]](msgspec.json.encode(raw)), uid=raw["metadata"].get("uid", ""))
            for key, raw in {**self.objects, ("rayjob", "demo"): self.raw}.items()
        }
        for fact in self.facts.values():
            entries[subjects.FACT, fact.id] = Entry(value=fact)
        if self.refusals:
            entries[subjects.RESULT, "applier"] = Entry(value=Result(root_uid="uid-demo", refusals=self.refusals))
        return View(controller="job", namespace="n", name="demo", entries=entries)

    @property
    def raw(self) -> Json:
        """The RayJob."""
        base: Json = {"name": "demo", "namespace": "n", "uid": "uid-demo", "resourceVersion": "7", "generation": 1}
        return {"metadata": {**base, **self.meta}, "spec": self.spec, "status": self.status}

    def gathered(self) -> JobView:
        """What `decide` is given."""
        found = controller(self.knobs).gather(self.view)
        assert found is not None
        return found

    def decide(self, seconds: float = 0.0) -> Decision:
        """The decision, `seconds` after the start of the attempt."""
        return controller(self.knobs).decide(self.gathered(), at(seconds), self.knobs)

    def next_status(self, seconds: float = 0.0) -> Json:
        """The status after the decision."""
        decision = self.decide(seconds)
        return self.status if decision.status is None else decision.status

    def phase(self, seconds: float = 0.0) -> str:
        """Phase and reason after the decision, as `Failed AppFailed`."""
        status = self.next_status(seconds)
        return f"{status.get('jobDeploymentStatus', 'New')} {status.get('reason', '')}".strip()

    def fact(self, ask: str, outcome: str, begun: float, head: str = HEAD_UID, **job: Any) -> JobWorld:
        """What the prober has learned of ask `probe`, `submit` or `stop`; returns the world."""
        known = JobFact(**job) if job.keys() - {"text"} else None
        name = f"{ask}-{self.status.get('jobId', JOB_ID)}"
        raw = {"id": name, "head": head, "begun": at(begun), "at": at(begun) + 0.1, "outcome": outcome}
        text = job.get("text", "connection refused" if outcome == "unreachable" else "")
        self.facts[name] = msgspec.structs.replace(msgspec.convert(raw, Fact), job=known, text=text)
        return self

    def ray_says(self, status: str, begun: float = 1.0, **job: Any) -> JobWorld:
        """Ray has answered the probe; returns the world."""
        return self.fact("probe", "ok", begun, status=status, **job)

    def submitter(self, end: str = "", seconds: float = 0.0, pods: str = "Running", **counts: int) -> JobWorld:
        """The submitter's Job, ended by condition `end` if given, and its pod; returns the world."""
        conditions = [condition(end, reason="Because", message="of the test", seconds=seconds)] if end else []
        meta = {"name": "demo", "namespace": "n", "uid": "uid-job", "ownerReferences": owned_by("uid-demo")}
        self.objects["job", "demo"] = {"metadata": meta, "status": {"conditions": conditions, **counts}}
        if pods:
            pod = {"name": "demo-pod", "namespace": "n", "uid": "uid-pod", "ownerReferences": owned_by("uid-job")}
            self.objects["pod", "demo-pod"] = {"metadata": pod, "status": {"phase": pods}}
        return self

    def cluster(self, state: str = "ready", head: str = HEAD, **meta: Any) -> JobWorld:
        """The attempt's RayCluster; returns the world."""
        base = {"name": CLUSTER, "namespace": "n", "uid": "uid-cluster", "ownerReferences": owned_by("uid-demo")}
        self.objects["raycluster", CLUSTER] = {"metadata": {**base, **meta}, "status": cluster_status(state, head)}
        return self

    def head(self, name: str = HEAD, uid: str = HEAD_UID, **meta: Any) -> JobWorld:
        """A head pod that runs; returns the world."""
        labels = {"ray.io/cluster": CLUSTER, "ray.io/node-type": "head"}
        base = {"name": name, "namespace": "n", "uid": uid, "labels": labels}
        status = {"phase": "Running", "conditions": [condition("Ready")]}
        self.objects["pod", name] = {"metadata": {**base, **meta}, "status": status}
        return self


def cluster_status(state: str = "ready", head: str = HEAD) -> Json:
    """Status of the attempt's cluster."""
    info = {"podName": head, "serviceName": f"{CLUSTER}-head-svc"} if head else {}
    return {"state": state, "endpoints": {"dashboard": "8265"}, "head": info, "observedGeneration": 1}


def initializing(state: str = "", **fields: Any) -> JobWorld:
    """An attempt whose cluster is there but not ready, unless `state` says so."""
    status = {
        "jobDeploymentStatus": "Initializing",
        "jobId": JOB_ID,
        "rayClusterName": CLUSTER,
        "startTime": rfc(0),
        "rayClusterStatus": cluster_status(state),
        "observedGeneration": 1,
    }
    meta = {"finalizers": ["ray.io/rayjob-finalizer"]}
    return JobWorld(spec=spec(**fields), status=status, meta=meta).cluster(state).head()


def running(mode: str = "K8sJobMode", **fields: Any) -> JobWorld:
    """An attempt that is Running, with its submitter's pod under way in K8sJobMode and nothing heard of Ray."""
    world = initializing("ready", submissionMode=mode, **fields)
    world.status = {**world.status, "jobDeploymentStatus": "Running", "dashboardURL": URL}
    service = {"metadata": {"name": "demo-head-svc"}, "spec": {"selector": {"ray.io/cluster": CLUSTER}}}
    world.objects["service", "demo-head-svc"] = copy.deepcopy(service)
    return world.submitter() if mode == "K8sJobMode" else world


def refusal(intent: str, ref: Ref, message: str, code: int = 403, reason: str = "Forbidden") -> Refusal:
    """The API server has refused an intent, and will be asked again at 60 s."""
    return Refusal(
        intent=intent,
        ref=ref,
        verb="create",
        code=code,
        reason=reason,
        message=message,
        at=at(1),
        retry_at=at(60),
    )


NEW_HEAD, NEW_UID = "demo-ccccc-head-bbbbb", "uid-head-b"


def new(**fields: Any) -> JobWorld:
    """A RayJob nobody has looked at."""
    return JobWorld(spec=spec(**fields))


def http(**fields: Any) -> JobWorld:
    """`running` in HTTPMode."""
    return running("HTTPMode", **fields)


def known(world: JobWorld, status: str = "RUNNING") -> JobWorld:
    """Ray's word is stored already."""
    world.status = {**world.status, "jobStatus": status, "rayJobInfo": {"endTime": rfc(0)}}
    return world


def without_head(world: JobWorld) -> JobWorld:
    """The head pod is gone."""
    del world.objects["pod", HEAD]
    return world


def other_head(world: JobWorld) -> JobWorld:
    """Another head pod has taken its place, and the cluster's status says so."""
    return without_head(world).head(NEW_HEAD, NEW_UID).cluster(head=NEW_HEAD)


def without_cluster(world: JobWorld) -> JobWorld:
    """The RayCluster is gone with its head."""
    del world.objects["raycluster", CLUSTER]
    return without_head(world)


def without_submitter(world: JobWorld) -> JobWorld:
    """The submitter's Job is gone."""
    del world.objects["job", "demo"]
    return world


def timer(world: JobWorld, since: float = 0.0) -> JobWorld:
    """The failure timer is stored."""
    world.status = {**world.status, "jobStatusCheckFailureStartTime": rfc(since)}
    return world
