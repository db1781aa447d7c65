"""RayClusters and RayJobs that keep coming on a bare cluster, and the hands of everybody who is missing there."""

import asyncio
import json
import time
from typing import Any

from bare_world import Json, ray_cluster, ray_job

from raybus.kube.client import Client
from raybus.kube.port import KubeError, Rejected, Request

RAY = "/apis/ray.io/v1/namespaces"
CORE = "/api/v1/namespaces"
MERGE = "application/merge-patch+json"
LOOK = 0.3
WITHIN = 180.0
"""Seconds that roots may take on a busy machine."""
READY = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "Ready")]


class Load:
    """`dashboard`: where all of them answer. `every`: seconds between two new roots; each third is a RayJob."""

    def __init__(self, client: Client, namespace: str, dashboard: tuple[str, int], every: float) -> None:
        self._client, self._namespace, self._dashboard, self._every = client, namespace, dashboard, every
        self._ready: set[str] = set()
        self._led: set[str] = set()
        self.made: list[str] = []

    async def run(self) -> None:
        """Create, and play kubelet and endpoints, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._create())
            tasks.create_task(self._play())

    async def through(self, more: int) -> None:
        """Return once `more` further roots and all earlier ones are where they should be. Raises AssertionError."""
        count, deadline = len(self.made) + more, time.monotonic() + WITHIN
        while late := await self._late(count):
            assert time.monotonic() < deadline, f"not within {WITHIN:.0f} s: {late}"
            await asyncio.sleep(LOOK)

    async def _late(self, count: int) -> list[str]:
        """Which of the first `count` roots are not there, ready or succeeded, and who has other pods than he should."""
        clusters, jobs, pods = [await self._list(kind) for kind in ("rayclusters", "rayjobs", "pods")]
        states = {c["metadata"]["name"]: c.get("status", {}).get("state", "") for c in clusters}
        states |= {j["metadata"]["name"]: j.get("status", {}).get("jobStatus", "") for j in jobs}
        late = [f"root {number}" for number in range(len(self.made), count)]
        late += [f"{n}: {states.get(n)!r}" for n in self.made[:count] if states.get(n) not in ("ready", "SUCCEEDED")]
        for cluster in clusters:
            name = cluster["metadata"]["name"]
            kinds = sorted(p["metadata"]["labels"]["ray.io/node-type"] for p in pods if _cluster_of(p) == name)
            if states[name] == "ready" and kinds != (["head", "worker"] if name in self.made else ["head"]):
                late.append(f"{name} has pods {kinds}")
        return late

    async def _create(self) -> None:
        while True:
            number = len(self.made)
            job = number % 3 == 2
            name = f"{'j' if job else 'c'}{number}"
            item = ray_job(name, submissionMode="HTTPMode") if job else ray_cluster(name)
            await self._send("POST", f"{RAY}/{self._namespace}/{'rayjobs' if job else 'rayclusters'}", item)
            self.made.append(name)
            await asyncio.sleep(self._every)

    async def _play(self) -> None:
        while True:
            try:
                for pod in await self._list("pods"):
                    if pod["metadata"]["name"] not in self._ready:
                        await self._make_ready(pod)
                for service in await self._list("services"):
                    if service["metadata"]["name"] not in self._led:
                        await self._lead(service)
            except KubeError:
                pass  # the object is gone: the next look shows what there is
            await asyncio.sleep(LOOK)

    async def _make_ready(self, pod: Json) -> None:
        name, address = pod["metadata"]["name"], self._dashboard[0]
        status = {"phase": "Running", "conditions": READY, "podIP": address, "podIPs": [{"ip": address}]}
        await self._send("PATCH", f"{CORE}/{self._namespace}/pods/{name}/status", {"status": status})
        self._ready.add(name)

    async def _lead(self, service: Json) -> None:
        """Let the port `dashboard` of a head's Service lead to the imitation, once its pod is there."""
        name = service["metadata"]["name"]
        pods = [pod for pod in await self._list("pods") if f"{_cluster_of(pod)}-head-svc" == name]
        heads = [pod for pod in pods if pod["metadata"]["labels"]["ray.io/node-type"] == "head"]
        if not heads or heads[0]["metadata"]["name"] not in self._ready:
            return
        meta, (address, port) = heads[0]["metadata"], self._dashboard
        target = {"kind": "Pod", "name": meta["name"], "namespace": self._namespace, "uid": meta["uid"]}
        ports = [{"name": "dashboard", "port": port, "protocol": "TCP"}]
        subsets = [{"addresses": [{"ip": address, "targetRef": target}], "ports": ports}]
        body: Json = {"metadata": {"name": name}, "subsets": subsets}
        try:
            await self._send("POST", f"{CORE}/{self._namespace}/endpoints", body)
        except Rejected as error:
            if error.reason != "AlreadyExists":
                raise
        self._led.add(name)

    async def _list(self, plural: str) -> list[Json]:
        base = RAY if plural.startswith("ray") else CORE
        answer = await self._client.send(Request(method="GET", path=f"{base}/{self._namespace}/{plural}"))
        items: list[Json] = json.loads(answer.body)["items"]
        return items

    async def _send(self, method: Any, path: str, body: Json) -> None:
        kind = MERGE if method == "PATCH" else "application/json"
        await self._client.send(Request(method=method, path=path, body=json.dumps(body).encode(), content_type=kind))


def _cluster_of(pod: Json) -> str:
    return str(pod["metadata"].get("labels", {}).get("ray.io/cluster", ""))
