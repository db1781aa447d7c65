"""Every revision of what one namespace holds, read from etcd itself: no server and no code of ours stands between.

Only what judges need is kept of an object; `raw`, if given, gets each value as it was stored.
"""

import asyncio
import base64
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TextIO

import aiohttp

Json = Mapping[str, Any]
RETRY = 0.5


class Pod(NamedTuple):
    """`owner`: UID of its RayCluster or Job. `group`: "" for a head. `usable`: neither being deleted nor ended."""

    uid: str
    owner: str
    cluster: str
    group: str
    head: bool
    usable: bool
    ready: bool


class Service(NamedTuple):
    """`head`: it leads to a head."""

    uid: str
    owner: str
    head: bool


class Cluster(NamedTuple):
    """`owner`: UID of its RayJob, or "". `desired`: workers by group. `settled`: its status is that of this spec and
    says ready."""

    uid: str
    owner: str
    deleting: bool
    desired: Mapping[str, int]
    settled: bool


class Job(NamedTuple):
    """`phase`: jobDeploymentStatus; `ray`: jobStatus; `attempt`: jobId; `plan`: its entrypoint."""

    uid: str
    deleting: bool
    plan: str
    attempts: int
    phase: str
    ray: str
    attempt: str
    cluster: str


Held = Pod | Service | Cluster | Job


class Seen(NamedTuple):
    """One revision. `at`: wall clock when it was read; `held` None = the object is gone."""

    revision: int
    at: float
    kind: str
    name: str
    held: Held | None


def _owner(item: Json) -> str:
    owners = item["metadata"].get("ownerReferences") or [{"uid": ""}]
    return str(owners[0]["uid"])


def _pod(item: Json) -> Pod:
    labels, status = item["metadata"].get("labels", {}), item.get("status", {})
    usable = "deletionTimestamp" not in item["metadata"] and status.get("phase") not in ("Failed", "Succeeded")
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in status.get("conditions", ()))
    head = labels.get("ray.io/node-type") == "head"
    group = "" if head else labels.get("ray.io/group", "")
    return Pod(item["metadata"]["uid"], _owner(item), labels.get("ray.io/cluster", ""), group, head, usable, ready)


def _service(item: Json) -> Service:
    selector = item["spec"].get("selector") or {}
    return Service(item["metadata"]["uid"], _owner(item), selector.get("ray.io/node-type") == "head")


def _cluster(item: Json) -> Cluster:
    meta, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    groups = spec.get("workerGroupSpecs") or ()
    desired = {g["groupName"]: g.get("replicas", 0) * g.get("numOfHosts", 1) for g in groups}
    settled = status.get("state") == "ready" and status.get("observedGeneration") == meta["generation"]
    return Cluster(meta["uid"], _owner(item), "deletionTimestamp" in meta, desired, settled)


def _job(item: Json) -> Job:
    meta, spec, status = item["metadata"], item["spec"], item.get("status") or {}
    words = (status.get(key, "") for key in ("jobDeploymentStatus", "jobStatus", "jobId", "rayClusterName"))
    return Job(meta["uid"], "deletionTimestamp" in meta, spec["entrypoint"], 1 + spec.get("backoffLimit", 0), *words)


KINDS: Mapping[str, tuple[str, Callable[[Json], Held]]] = {
    "pod": ("pods", _pod),
    "service": ("services/specs", _service),
    "raycluster": ("ray.io/rayclusters", _cluster),
    "rayjob": ("ray.io/rayjobs", _job),
}
"""Kind -> where etcd holds it, and its reader."""


class History:
    """`seen`: in the order of revisions within a kind. `now`: what there is, by (kind, name)."""

    def __init__(self, etcd: str, namespace: str, raw: TextIO | None = None) -> None:
        self._etcd, self._namespace, self._raw = etcd, namespace, raw
        self.seen: list[Seen] = []
        self.now: dict[tuple[str, str], Held] = {}
        self._standing: set[str] = set()

    @property
    def standing(self) -> bool:
        """Whether everything is recorded from now on."""
        return self._standing == KINDS.keys()

    def ordered(self) -> list[Seen]:
        """Everything in the order in which etcd stored it."""
        return sorted(self.seen, key=lambda seen: seen.revision)

    def of(self, kind: str) -> Iterator[tuple[str, Held]]:
        """What there is of a kind now, with names."""
        return ((name, held) for (each, name), held in list(self.now.items()) if each == kind)

    async def run(self) -> None:
        """Record until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for kind in KINDS:
                tasks.create_task(self._follow(kind))

    async def _follow(self, kind: str) -> None:
        prefix = f"/registry/{KINDS[kind][0]}/{self._namespace}/"
        start = 0
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=None)) as session:
            while True:
                # Revision 0 is the next one: what was before the namespace may be compacted away.
                asked = {"key": _coded(prefix), "range_end": _coded(prefix[:-1] + "0"), "start_revision": start}
                with suppress(aiohttp.ClientError, OSError):
                    async with session.post(f"{self._etcd}/v3/watch", json={"create_request": asked}) as answer:
                        async for line in _lines(answer):
                            start = self._take(kind, prefix, json.loads(line), start)
                await asyncio.sleep(RETRY)

    def _take(self, kind: str, prefix: str, message: Json, start: int) -> int:
        """Record one message of the watch; returns the revision to go on from."""
        now, result = time.time(), message["result"]
        if result.get("canceled"):
            raise RuntimeError(f"etcd ends the record of {kind}: {result.get('cancel_reason')}")
        if result.get("created"):
            self._standing.add(kind)
            return max(start, int(result["header"]["revision"]) + 1)
        for event in result.get("events", ()):
            stored = event["kv"]
            revision = int(stored["mod_revision"])
            name = base64.b64decode(stored["key"]).decode().removeprefix(prefix)
            text = base64.b64decode(stored.get("value", ""))
            held = KINDS[kind][1](json.loads(text)) if event.get("type") != "DELETE" else None
            self.seen.append(Seen(revision, now, kind, name, held))
            if held is None:
                self.now.pop((kind, name), None)
            else:
                self.now[kind, name] = held
            if self._raw is not None:
                self._raw.write(f"{revision}\t{now:.3f}\t{kind}\t{name}\t{text.decode().strip()}\n")
            start = revision + 1
        return start


def _coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


async def _lines(answer: aiohttp.ClientResponse) -> Any:
    rest = b""
    async for chunk in answer.content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if line.strip():
                yield line
