"""What users do meanwhile: RayClusters that grow, shrink, lose pods and are made anew; RayJobs that come and end.

Which cluster suffers what follows from its number, so that a judge can be exact: only the first kind changes its spec.
"""

import asyncio
import random
import time
from typing import Any

from api import Api, Away
from history import Cluster, History, Job, Pod
from imitation import plan

Json = dict[str, Any]
RATE = 10.0
"""RayClusters and RayJobs made in a second at the start."""
USERS, PAUSE = 5, 1.0
"""How many users there are, and seconds between two things that one does."""
SCALED, EVICTED, REMADE = (0,), (1, 2), (3,)
"""The number of a cluster modulo 4 -> what is done to it."""
ENDED = ("Complete", "Failed")
OUTCOMES = (["SUCCEEDED"], ["SUCCEEDED"], ["SUCCEEDED"], ["FAILED"], ["FAILED", "SUCCEEDED"])


def cluster_spec(workers: int) -> Json:
    """A head and one group."""

    def template(name: str) -> Json:
        size = {"cpu": "1", "memory": "1Gi"}
        resources = {"limits": size, "requests": size}
        return {"spec": {"containers": [{"name": name, "image": "rayproject/ray:2.55.0", "resources": resources}]}}

    group = {"groupName": "small", "replicas": workers, "minReplicas": 0, "maxReplicas": 10, "rayStartParams": {}}
    return {
        "rayVersion": "2.55.0",
        "headGroupSpec": {"rayStartParams": {}, "template": template("ray-head")},
        "workerGroupSpecs": [group | {"template": template("ray-worker")}],
    }


def ray_cluster(name: str, workers: int) -> Json:
    """A RayCluster."""
    return {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": name}, "spec": cluster_spec(workers)}


def ray_job(name: str, outcomes: list[str], seconds: float, shutdown: bool) -> Json:
    """A RayJob in HTTPMode; as many attempts as `outcomes`."""
    spec = {
        "entrypoint": plan(name, outcomes, seconds),
        "submissionMode": "HTTPMode",
        "backoffLimit": len(outcomes) - 1,
        "shutdownAfterJobFinishes": shutdown,
        "rayClusterSpec": cluster_spec(1),
    }
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}, "spec": spec}


class Workload:
    """`clusters`, `jobs`: how many are kept under way. `done`: what was done, by name."""

    def __init__(self, api: Api, history: History, dice: random.Random, clusters: int, jobs: int) -> None:
        self._api, self._history, self._dice = api, history, dice
        self._clusters, self._jobs = clusters, jobs
        self._made = 0
        self.wanted_clusters: set[str] = set()
        self.wanted_jobs: set[str] = set()
        self.done: dict[str, int] = {}

    async def begin(self) -> None:
        """Make everything."""
        for number in range(max(self._clusters, self._jobs)):
            if number < self._clusters:
                await self._make_cluster(f"c{number:03d}")
            if number < self._jobs:
                await self._make_job()
            await asyncio.sleep(1 / RATE)

    async def go_on(self) -> None:
        """Do this and that until cancelled."""
        await asyncio.gather(*(self._use() for _ in range(USERS)))

    async def _use(self) -> None:
        deeds = {self._scale: 4, self._evict: 4, self._remake: 1, self._next_job: 4}
        while True:
            (deed,) = self._dice.choices(list(deeds), list(deeds.values()))
            name = deed.__name__.strip("_")
            try:
                await deed()
                self.done[name] = self.done.get(name, 0) + 1
            except Away:
                self.done["away"] = self.done.get("away", 0) + 1
            await asyncio.sleep(PAUSE)

    async def _make_cluster(self, name: str) -> None:
        self.wanted_clusters.add(name)
        await self._api.insist("POST", self._api.rays("rayclusters"), ray_cluster(name, self._dice.randint(1, 3)))

    async def _make_job(self) -> None:
        name = f"j{self._made:04d}"
        self._made += 1
        outcomes, seconds = self._dice.choice(OUTCOMES), self._dice.uniform(5, 120)
        self.wanted_jobs.add(name)
        body = ray_job(name, outcomes, round(seconds, 1), self._dice.random() < 0.5)
        await self._api.insist("POST", self._api.rays("rayjobs"), body)

    def _any(self, classes: tuple[int, ...]) -> str:
        return self._dice.choice(sorted(n for n in self.wanted_clusters if int(n[1:]) % 4 in classes))

    async def _scale(self) -> None:
        path = self._api.rays("rayclusters", self._any(SCALED))
        groups = cluster_spec(self._dice.randint(0, 4))["workerGroupSpecs"]
        await self._api.call("PATCH", path, {"spec": {"workerGroupSpecs": groups}})

    async def _evict(self) -> None:
        name = self._any(EVICTED)
        pods = [n for n, p in self._history.of("pod") if isinstance(p, Pod) and p.cluster == name and p.usable]
        if pods:
            await self._api.call("DELETE", self._api.pods(self._dice.choice(sorted(pods))))

    async def _remake(self) -> None:
        name = self._any(REMADE)
        await self._api.insist("DELETE", self._api.rays("rayclusters", name))
        deadline = time.monotonic() + 120
        while ("raycluster", name) in self._history.now and time.monotonic() < deadline:
            await asyncio.sleep(0.1)
        await self._make_cluster(name)

    async def _next_job(self) -> None:
        """Remove a job that has ended, and make another."""
        jobs = {name: job for name, job in self._history.of("rayjob") if isinstance(job, Job)}
        ended = [name for name, job in jobs.items() if job.phase in ENDED and not job.deleting]
        if ended:
            name = self._dice.choice(sorted(ended))
            self.wanted_jobs.discard(name)
            await self._api.insist("DELETE", self._api.rays("rayjobs", name))
        alive = [
            name for name in self.wanted_jobs if name not in jobs or jobs[name].phase not in ("Complete", "Failed")
        ]
        if len(alive) < self._jobs:
            await self._make_job()

    def unfinished(self) -> list[str]:
        """What has not converged: a sentence each."""
        pods = [pod for _, pod in self._history.of("pod") if isinstance(pod, Pod)]
        found = []
        for name in sorted(self.wanted_clusters):
            held = self._history.now.get(("raycluster", name))
            found += [f"RayCluster {name} {why}" for why in _lacks(held, pods)]
        for name in sorted(self.wanted_jobs):
            job = self._history.now.get(("rayjob", name))
            if not isinstance(job, Job):
                found.append(f"RayJob {name} is not there")
            elif job.phase not in ENDED:
                found.append(f"RayJob {name} is {job.phase or 'new'}, Ray says {job.ray or 'nothing'}")
        owners = {held.uid for _, held in list(self._history.now.items())}
        found += [f"Pod {n} has no owner" for n, p in self._history.of("pod") if getattr(p, "owner", "") not in owners]
        return found


def _lacks(held: object, pods: list[Pod]) -> list[str]:
    if not isinstance(held, Cluster):
        return ["is not there"]
    own = [pod for pod in pods if pod.owner == held.uid and pod.usable]
    found = [] if held.settled else ["is not ready in its status"]
    heads = sum(pod.head for pod in own)
    found += [] if heads == 1 else [f"has {heads} heads"]
    for group, desired in held.desired.items():
        count = sum(pod.group == group for pod in own)
        found += [] if count == desired else [f"has {count} of {desired} workers"]
    return found
