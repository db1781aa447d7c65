"""What has to hold once everything has come to rest: everything wanted is there, nothing else is, and VIEW knows it."""

from collections.abc import Iterator

from raybus.api.decision import Json
from raybus.api.kinds import BY_KIND, BY_TOKEN, ROOTS
from raybus.api.messages import H_GONE, H_RV
from raybus.api.subjects import parse_view, view
from raybus.testkit.fake_kubelet import is_ready
from raybus.testkit.sim_jobs import FINAL
from raybus.testkit.sim_ledger import desired, owner
from raybus.testkit.sim_world import World

_TOKENS = {BY_KIND[kind].token for kind in ("RayCluster", "RayJob", "Pod", "Service", "Job")}


def unsettled(world: World) -> str:
    """What is not as it should be in the end, "" if everything is."""
    return next(_problems(world), "")


def _problems(world: World) -> Iterator[str]:
    store = world.api.store
    for cluster in store.all("RayCluster"):
        yield from _cluster(world, cluster)
    for job in store.all("RayJob"):
        yield from _job(world, job)
    for kind in ("Pod", "Service", "Job", "RayCluster"):
        for obj in store.all(kind):
            reference = owner(obj)
            if (reference is None and kind != "RayCluster") or (reference and reference["uid"] not in store.uids):
                yield f"{kind} {obj['metadata']['name']} belongs to nobody"
    yield from _view(world)
    if left := [message.subject for message in world.bus.streams["INTENT"].all(">")]:
        yield f"Decisions that nobody carries out: {left}"


def _cluster(world: World, cluster: Json) -> Iterator[str]:
    meta, status, store = cluster["metadata"], cluster.get("status") or {}, world.api.store
    if "deletionTimestamp" in meta:
        yield f"RayCluster {meta['name']} is still being deleted"
        return
    pods = [p for p in store.all("Pod", meta["namespace"]) if (owner(p) or {}).get("uid") == meta["uid"]]
    wanted = {"headgroup": 1}
    wanted |= {g["groupName"]: desired(g) for g in cluster["spec"].get("workerGroupSpecs") or ()}
    for group, count in wanted.items():
        present = [p for p in pods if p["metadata"]["labels"].get("ray.io/group") == group]
        if len(present) != count or not all(is_ready(pod) for pod in present):
            states = [(p["metadata"]["name"], p["status"].get("phase"), is_ready(p)) for p in present]
            yield f"RayCluster {meta['name']}: group {group} has {states}, wanted are {count}"
    workers = sum(wanted.values()) - 1
    said = {
        "state": "ready",
        "observedGeneration": meta["generation"],
        "desiredWorkerReplicas": workers,
        "availableWorkerReplicas": workers,
        "readyWorkerReplicas": workers,
    }
    wrong = {key: status.get(key, 0) for key, value in said.items() if status.get(key, 0) != value}
    if wrong:
        yield f"status of RayCluster {meta['name']} says {wrong} instead of {said}"
    if store.get("Service", (meta["namespace"], f"{meta['name']}-head-svc")) is None:
        yield f"RayCluster {meta['name']} has no head Service"


def _job(world: World, job: Json) -> Iterator[str]:
    meta, status = job["metadata"], job.get("status") or {}
    if "deletionTimestamp" in meta:
        yield f"RayJob {meta['name']} is still being deleted"
        return
    if status.get("jobDeploymentStatus") not in FINAL:
        yield f"RayJob {meta['name']} is {status.get('jobDeploymentStatus') or 'New'}"
        return
    clusters = [c for c in world.api.store.all("RayCluster") if (owner(c) or {}).get("uid") == meta["uid"]]
    names = [c["metadata"]["name"] for c in clusters]
    if job["spec"].get("shutdownAfterJobFinishes") and names:
        yield f"RayJob {meta['name']} has ended, its cluster {names} is still there"
    elif set(names) - {status.get("rayClusterName")}:
        yield f"RayJob {meta['name']} has clusters {names}, its status names {status.get('rayClusterName')}"


def _view(world: World) -> Iterator[str]:
    """VIEW holds every object in the views that it surely belongs to, at its present version, and nothing else."""
    store, stream = world.api.store, world.bus.streams["VIEW"]
    for controller, kind in ROOTS.items():
        for obj in store.all(kind):
            yield from _published(world, controller, obj["metadata"]["name"], obj)
    for pod in (*store.all("Pod"), *store.all("Service")):
        cluster = pod["metadata"].get("labels", {}).get("ray.io/cluster")
        if cluster:
            yield from _published(world, "cluster", cluster, pod)
    for message in stream.latest(["view.>"]):
        key = parse_view(message.subject)
        if key.kind not in _TOKENS or H_GONE in message.headers:
            continue
        found = store.get(BY_TOKEN[key.kind].kind, (key.namespace, key.name))
        if found is None:
            yield f"VIEW still holds {message.subject}"
        elif found["metadata"]["resourceVersion"] != message.headers[H_RV]:
            yield f"VIEW holds {message.subject} at {message.headers[H_RV]}, not {found['metadata']['resourceVersion']}"


def _published(world: World, controller: str, root: str, obj: Json) -> Iterator[str]:
    meta = obj["metadata"]
    subject = view(controller, meta["namespace"], root, BY_KIND[obj["kind"]].token, meta["name"])
    message = world.bus.streams["VIEW"].last(subject)
    if message is None or H_GONE in message.headers:
        yield f"VIEW does not hold {subject}"
