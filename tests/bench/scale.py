"""100 clusters without workers grow to 100 workers each, all at once: 10,000 pods."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

from kubeapi import Api, cluster_spec
from planes import Plane
from procs import measured
from runs import remove_namespaces
from say import say

from raybus.dev.cluster import Cluster
from raybus.dev.errors import DevError

CLUSTERS, WORKERS = 100, 100
PATIENCE = 900.0
PATH = "/apis/ray.io/v1/namespaces/scale/rayclusters"


def measure(cluster: Cluster, plane: Plane, out: Path) -> str:
    """Raises DevError when not all workers are ready in time."""
    result = asyncio.run(_measure(cluster, plane))
    remove_namespaces(cluster, "scale")
    out.write_text(json.dumps(result))
    say(json.dumps(result, indent=1))
    shown = ("pods_per_s", "cpu_ms_per_pod", "rss_mb", "down_pods_per_s")
    return "bench: " + " ".join(f"{name}={result[name]:g}" for name in shown)


async def _measure(cluster: Cluster, plane: Plane) -> dict[str, Any]:
    async with Api(cluster) as api:
        await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "scale"}})
        seen: dict[str, int] = {}
        changed, ready = asyncio.Event(), asyncio.Event()
        following = asyncio.create_task(_follow(api, seen, changed, ready))
        await ready.wait()
        for number in range(CLUSTERS):
            body = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": f"s{number:03d}"}}
            await api.call("POST", PATH, {**body, "spec": cluster_spec(0, WORKERS)})
        await _all(seen, changed, 0)
        pods = CLUSTERS * WORKERS
        with measured(plane.pids) as up:
            await _resize(api, WORKERS)
            await _all(seen, changed, WORKERS)
        with measured(plane.pids) as down:
            await _resize(api, 0)
            await _all(seen, changed, 0)
        following.cancel()
    return {
        "pods_per_s": round(pods / up.wall_s, 1),
        "cpu_ms_per_pod": round(up.cpu_total_s / pods * 1000, 2),
        "rss_mb": round(up.rss_peak_mb, 1),
        "down_pods_per_s": round(pods / down.wall_s, 1),
        "cpu_by": {name: round(value, 2) for name, value in up.cpu_s.items()},
        "rss_by": {name: round(value, 1) for name, value in up.rss_mb.items()},
    }


async def _follow(api: Api, seen: dict[str, int], changed: asyncio.Event, ready: asyncio.Event) -> None:
    async for kind, item in api.watch(PATH, ready):
        status = item.get("status") or {}
        if kind != "DELETED" and status.get("state") == "ready":
            seen[item["metadata"]["name"]] = status.get("readyWorkerReplicas", 0)
            changed.set()


async def _resize(api: Api, workers: int) -> None:
    patch = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": workers}]
    calls = (
        api.call("PATCH", f"{PATH}/s{number:03d}", patch, "application/json-patch+json") for number in range(CLUSTERS)
    )
    await asyncio.gather(*calls)


async def _all(seen: dict[str, int], changed: asyncio.Event, workers: int) -> None:
    """Wait until every cluster has exactly so many ready workers."""
    begun = time.monotonic()
    while sum(count == workers for count in seen.values()) < CLUSTERS:
        changed.clear()
        left = begun + PATIENCE - time.monotonic()
        try:
            await asyncio.wait_for(changed.wait(), left)
        except TimeoutError:
            done = sum(count == workers for count in seen.values())
            raise DevError(
                f"only {done} of {CLUSTERS} clusters have {workers} workers after {PATIENCE:.0f} s"
            ) from None
