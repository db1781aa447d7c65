"""RayJobs in HTTPMode against stand-in dashboards, some of which hang and some of which are dead (issue "Load")."""

import asyncio
import json
import statistics
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dashboards import Dashboards
from kubeapi import Api, cluster_spec
from planes import raybus
from plot import steps, svg
from procs import measured
from runs import remove_namespaces
from say import say

from raybus.dev.cluster import Cluster
from raybus.dev.errors import DevError

RATE = 6.0
"""Jobs created in a second."""
PATIENCE, DELETION = 1200.0, 300.0
PATH = "/apis/ray.io/v1/namespaces/rayjobs/rayjobs"


class ProbedThroughUs(Cluster):
    """The cluster, but for the prober, whose way to the dashboards (the service proxy) leads to the stand-ins."""

    prober_config: Path = Path()

    def kubeconfig_for(self, user: str) -> Path:
        return ProbedThroughUs.prober_config if user == "prober" else super().kubeconfig_for(user)


def measure(cluster: Cluster, out: Path, number: int) -> str:
    """`number` RayJobs without workers. The figure: from the end of a job in Ray to `Complete` in its status."""
    result = asyncio.run(_measure(cluster, out, number))
    remove_namespaces(cluster, "rayjobs")
    (out / "rayjobs.json").write_text(json.dumps(result))
    say(json.dumps(result, indent=1))
    shown = ("jobs", "complete", "seen_p50", "seen_p99", "seen_max", "cpu_ms_per_job", "rss_mb")
    return "bench: " + " ".join(f"{name}={result[name]:g}" for name in shown)


async def _measure(cluster: Cluster, out: Path, number: int) -> dict[str, Any]:
    async with (
        Api(cluster) as api,
        Dashboards(await api.call("GET", "/api/v1/namespaces/kube-system")) as dashboards,
    ):
        await api.call("POST", "/api/v1/namespaces", {"metadata": {"name": "rayjobs"}})
        ProbedThroughUs.prober_config = dashboards.kubeconfig(out / "stand-in.yaml")
        ended: dict[str, tuple[str, float]] = {}
        changed, ready = asyncio.Event(), asyncio.Event()
        following = asyncio.create_task(_follow(api, ended, changed, ready))
        await ready.wait()
        # Starting the services blocks, and the stand-ins must answer meanwhile.
        manager = raybus(ProbedThroughUs(**asdict(cluster)), out / "raybus", {})
        plane = await asyncio.to_thread(manager.__enter__)
        try:
            with measured(plane.pids) as cost:
                begun = time.monotonic()
                for count in range(number):
                    await api.call("POST", PATH, _job(f"j{count:05d}"))
                    await asyncio.sleep(1 / RATE)
                await _until_seen(dashboards, ended, changed, number)
        finally:
            following.cancel()
            await _delete(api)
            await asyncio.to_thread(manager.__exit__, None, None, None)
        curve = steps([at - begun for state, at in ended.values() if state == "Complete"])
        (out / f"rayjobs-{number}.svg").write_text(
            svg(f"{number} RayJobs created at {RATE:g}/s", {"raybus": curve}, "complete jobs")
        )
        return _result(dashboards, ended, number, cost.cpu_total_s, cost.rss_peak_mb)


def _result(
    dashboards: Dashboards, ended: dict[str, tuple[str, float]], number: int, cpu_s: float, rss_mb: float
) -> dict[str, Any]:
    complete = {job for job, (state, _) in ended.items() if state == "Complete"}
    delays = sorted(ended[job][1] - at for job, at in dashboards.ended_at.items() if job in complete)
    return {
        "jobs": number,
        "hanging": dashboards.count("hangs"),
        "dead": dashboards.count("dead"),
        "complete": len(complete),
        "seen_p50": round(statistics.median(delays), 3),
        "seen_p99": round(delays[int(0.99 * len(delays))], 3),
        "seen_max": round(delays[-1], 3),
        "cpu_ms_per_job": round(cpu_s / number * 1000, 1),
        "rss_mb": round(rss_mb, 1),
    }


async def _follow(api: Api, ended: dict[str, tuple[str, float]], changed: asyncio.Event, ready: asyncio.Event) -> None:
    async for _, item in api.watch(PATH, ready):
        state = (item.get("status") or {}).get("jobDeploymentStatus", "")
        if state in ("Complete", "Failed"):
            ended.setdefault(item["metadata"]["name"], (state, time.monotonic()))
            changed.set()


async def _delete(api: Api) -> None:
    """Delete the jobs while somebody takes their finalizers off. Raises DevError."""
    await api.call("DELETE", PATH)
    deadline = time.monotonic() + DELETION
    while left := (await api.call("GET", PATH))["items"]:
        if time.monotonic() > deadline:
            raise DevError(f"{len(left)} RayJobs stay, for instance {left[0]['metadata']['name']}")
        await asyncio.sleep(1)


async def _until_seen(
    dashboards: Dashboards, ended: dict[str, tuple[str, float]], changed: asyncio.Event, number: int
) -> None:
    """Until every job whose head answers has ended, or for `PATIENCE`."""
    begun = time.monotonic()
    while time.monotonic() < begun + PATIENCE:
        if dashboards.met >= number and dashboards.healthy_jobs <= ended.keys():
            return
        changed.clear()
        try:
            await asyncio.wait_for(changed.wait(), 1)
        except TimeoutError:
            continue


def _job(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {"name": name},
        "spec": {
            "entrypoint": "python -c 1",
            "submissionMode": "HTTPMode",
            "shutdownAfterJobFinishes": False,
            "rayClusterSpec": cluster_spec(0, 0),
        },
    }
