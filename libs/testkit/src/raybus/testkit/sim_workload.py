"""What users, nodes and Ray do in a simulated run: objects come, change and go, pods fail, dashboards hang."""

import asyncio
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from raybus.api.decision import Json
from raybus.api.kinds import BY_KIND
from raybus.testkit.api_controllers import later
from raybus.testkit.api_errors import ApiError
from raybus.testkit.api_store import Key
from raybus.testkit.rayclusters import group, template
from raybus.testkit.sim_ledger import owner
from raybus.testkit.sim_world import World

NAMESPACE = "ns"


class Workload:
    """Acts as users and nodes do. `note`: told what happens."""

    def __init__(self, world: World, note: Callable[[str], None]) -> None:
        self._world, self._note = world, note
        self._rng = world.chance("workload")
        self._able: Sequence[str] = ()
        self._store, self._verbs = world.api.store, world.api.verbs

    async def run(self, seconds: float) -> None:
        """Create everything within the first seconds, then act now and then until `seconds` have passed.

        Runs differ in what they are about: a few things done often find what many things done seldom do not.
        """
        rng = self._rng
        begin, (clusters, jobs, pause, able) = self._world.time, rng.choice(EMPHASES)
        self._able = able
        for number in range(rng.randrange(1, clusters + 1)):
            await asyncio.sleep(rng.uniform(0.0, 1.5))
            self._create("RayCluster", f"c{number}", _cluster_spec(rng))
        for number in range(rng.randrange(1, jobs + 1)):
            await asyncio.sleep(rng.uniform(0.0, 1.5))
            self._create("RayJob", f"j{number}", _job_spec(rng, self._stubborn()))
        deeds = [name for name in able if rng.random() < 0.5] or list(able)
        while self._world.time < begin + seconds:
            await asyncio.sleep(rng.expovariate(1 / pause))
            DEEDS[rng.choice(deeds)](self)

    def _stubborn(self) -> bool:
        """Whether the next job fails and is tried again: half of all in a run of which jobs are the subject."""
        return "scale" not in self._able and self._rng.random() < 0.5

    def end(self) -> None:
        """Nothing of this goes on: quotas are lifted, dashboards answer."""
        self._verbs.quota.clear()
        for head in self._world.ray.heads.values():
            head.mode = "ok"

    # ---- users

    def scale(self) -> None:
        """Change the replicas of a worker group; often while one of its pods becomes unready."""
        key = self._pick("RayCluster", owned=False)
        if key is not None:
            number, replicas = self._group(key), self._rng.randrange(0, 5)
            self._note(f"scale {key[1]} group {number} to {replicas}")
            self._change_group(key, number, {"replicas": replicas})
            if self._rng.random() < 0.5:
                later(self._rng.uniform(0.0, 0.3), self.flap)
            if self._rng.random() < 0.3:
                later(self._rng.uniform(0.0, 0.2), self.scale)

    def scale_by_name(self) -> None:
        """What Ray's autoscaler does: lower `replicas` and name the pods that go."""
        key = self._pick("RayCluster", owned=False)
        if key is None:
            return
        number = self._group(key)
        found = self._store.objects["RayCluster"][key]["spec"]["workerGroupSpecs"][number]
        pods = [
            pod["metadata"]["name"]
            for pod in self._store.all("Pod", key[0])
            if (owner(pod) or {}).get("name") == key[1]
            and pod["metadata"]["labels"]["ray.io/group"] == found["groupName"]
        ]
        replicas = int(found["replicas"])
        if pods and replicas:
            name = self._rng.choice(pods)
            self._note(f"scale {key[1]} down by {name}")
            strategy = {"workersToDelete": [name]}
            self._change_group(key, number, {"replicas": replicas - 1, "scaleStrategy": strategy})

    def delete_cluster(self) -> None:
        """Delete a RayCluster, and perhaps make one of the same name again."""
        key = self._pick("RayCluster", owned=False)
        if key is not None and self._delete("RayCluster", key) and self._rng.random() < 0.7:
            later(self._rng.uniform(0.05, 3.0), self._create, "RayCluster", key[1], _cluster_spec(self._rng))

    def delete_job(self) -> None:
        """Delete a RayJob, and perhaps make one of the same name again."""
        key = self._pick("RayJob")
        if key is not None and self._delete("RayJob", key) and self._rng.random() < 0.7:
            later(self._rng.uniform(0.05, 3.0), self._create, "RayJob", key[1], _job_spec(self._rng, self._stubborn()))

    def new_job(self) -> None:
        """One more RayJob."""
        if len(self._store.objects.get("RayJob", ())) < 4:
            self._create("RayJob", f"j{self._store.version}", _job_spec(self._rng, self._stubborn()))

    def delete_pod(self) -> None:
        """Somebody deletes a pod."""
        key = self._pick("Pod")
        if key is not None:
            self._delete("Pod", key)

    def touch(self) -> None:
        """Somebody edits an annotation, which takes the version away under whoever is about to write."""
        kind = self._rng.choice(("RayCluster", "RayJob"))
        key = self._pick(kind)
        if key is not None:
            patch: Json = {"metadata": {"annotations": {"touched": str(self._store.version)}}}
            self._as_user(lambda: self._verbs.merge_patch(BY_KIND[kind], key, patch))

    def quota(self) -> None:
        """A quota that some pods do not fit into, for a while."""
        limit = self._rng.randrange(0, 6)
        self._note(f"quota of {limit} pods")
        self._verbs.quota[NAMESPACE] = limit
        later(self._rng.uniform(1.0, 8.0), self._verbs.quota.clear)

    # ---- nodes and Ray

    def fail_pod(self) -> None:
        """A pod ends as Failed."""
        pod = self._any_pod("")
        if pod is not None:
            self._note(f"{pod['metadata']['name']} fails")
            self._world.kubelet.fail(pod["metadata"]["uid"])

    def fail_head(self) -> None:
        """A head pod ends as Failed, or is deleted by somebody."""
        pod = self._any_pod("head")
        if pod is None:
            return
        meta = pod["metadata"]
        if self._rng.random() < 0.5:
            self._note(f"{meta['name']} fails")
            self._world.kubelet.fail(meta["uid"])
        else:
            self._delete("Pod", (meta["namespace"], meta["name"]))

    def flap(self) -> None:
        """A pod is unready for a moment."""
        pod = self._any_pod("")
        if pod is not None:
            self._world.kubelet.end(pod["metadata"]["uid"], 1)
            self._world.ray.heads.pop(pod["metadata"]["uid"], None)

    def dashboard(self) -> None:
        """A dashboard is dead or hangs for a while."""
        pod = self._any_pod("head")
        if pod is not None:
            head = self._world.ray.head(pod["metadata"]["uid"])
            head.mode = "dead" if self._rng.random() < 0.5 else "hanging"
            self._note(f"the dashboard of {pod['metadata']['name']} is {head.mode}")
            later(self._rng.uniform(1.0, 10.0) if self._rng.random() < 0.8 else 40.0, setattr, head, "mode", "ok")

    # ---- helpers

    def _as_user(self, do: Callable[[], Any]) -> bool:
        self._store.writer = "user"
        try:
            do()
        except ApiError as error:
            self._note(f"refused: {error}")
            return False
        finally:
            self._store.writer = ""
        return True

    def _create(self, kind: str, name: str, spec: Json) -> None:
        body = {"metadata": {"name": name}, "spec": spec}
        self._note(f"create {kind} {name}")
        self._as_user(lambda: self._verbs.create(BY_KIND[kind], NAMESPACE, body))

    def _delete(self, kind: str, key: Key) -> bool:
        self._note(f"delete {kind} {key[1]}")
        return self._as_user(lambda: self._verbs.delete(BY_KIND[kind], key, {}))

    def _pick(self, kind: str, owned: bool | None = None) -> Key | None:
        """An object of a kind; `owned`: whether it has an owner, None = no matter."""
        found = [
            key
            for key, obj in sorted(self._store.objects.get(kind, {}).items())
            if owned in (None, owner(obj) is not None) and "deletionTimestamp" not in obj["metadata"]
        ]
        return self._rng.choice(found) if found else None

    def _any_pod(self, node_type: str) -> Json | None:
        pods = [
            pod
            for pod in self._store.all("Pod")
            if node_type in ("", pod["metadata"]["labels"].get("ray.io/node-type"))
        ]
        return self._rng.choice(pods) if pods else None

    def _group(self, key: Key) -> int:
        return self._rng.randrange(len(self._store.objects["RayCluster"][key]["spec"]["workerGroupSpecs"]))

    def _change_group(self, key: Key, number: int, change: Json) -> None:
        cluster = self._store.objects["RayCluster"][key]
        groups = list(cluster["spec"]["workerGroupSpecs"])
        groups[number] = {**groups[number], **change}
        patch = {"spec": {"workerGroupSpecs": groups}}
        self._as_user(lambda: self._verbs.merge_patch(BY_KIND["RayCluster"], key, patch))


DEEDS: Mapping[str, Callable[[Workload], None]] = {
    "scale": Workload.scale,
    "scale by name": Workload.scale_by_name,
    "delete cluster": Workload.delete_cluster,
    "delete job": Workload.delete_job,
    "new job": Workload.new_job,
    "delete pod": Workload.delete_pod,
    "touch": Workload.touch,
    "quota": Workload.quota,
    "fail pod": Workload.fail_pod,
    "fail head": Workload.fail_head,
    "flap": Workload.flap,
    "dashboard": Workload.dashboard,
}
"""Everything that may happen, by name."""

JOB_DEEDS = ("delete job", "new job", "delete pod", "touch", "fail head", "flap", "dashboard")
CLUSTER_DEEDS = ("scale", "scale by name", "delete cluster", "delete pod", "touch", "quota", "fail pod", "flap")
EMPHASES: Sequence[tuple[int, int, float, Sequence[str]]] = (
    (2, 3, 2.0, tuple(DEEDS)),
    (2, 3, 2.0, tuple(DEEDS)),
    (3, 1, 1.0, CLUSTER_DEEDS),
    (1, 5, 2.0, JOB_DEEDS),
)
"""(RayClusters and RayJobs at most, seconds between two deeds, deeds to choose from) of the kinds of runs."""


def _cluster_spec(rng: random.Random) -> Json:
    groups = [group(name, rng.randrange(1, 4)) for name in ("small", "large")[: rng.randrange(1, 3)]]
    return {"headGroupSpec": {"template": template()}, "workerGroupSpecs": groups}


def _job_spec(rng: random.Random, stubborn: bool) -> Json:
    spec: Json = {
        "entrypoint": f"work {rng.randrange(1, 8)} {'FAILED' if stubborn or rng.random() < 0.3 else 'SUCCEEDED'}",
        "submissionMode": rng.choice(("HTTPMode", "K8sJobMode")),
        "backoffLimit": 3 if stubborn else rng.choice((0, 0, 1, 2)),
        "rayClusterSpec": {"headGroupSpec": {"template": template()}, "workerGroupSpecs": [group("w", 1)]},
    }
    if rng.random() < 0.5:
        spec |= {"shutdownAfterJobFinishes": True, "ttlSecondsAfterFinished": rng.randrange(0, 5)}
    if rng.random() < 0.2:
        spec["activeDeadlineSeconds"] = rng.randrange(5, 30)
    return spec
