"""`raybus demo`: a real RayJob on real Ray through all services, shown while it runs."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

from rich.console import Console

from raybus.bus.port import BusError
from raybus.cli.commands import explanation
from raybus.cli.dev_command import make_stack
from raybus.cli.place import Target, UsageError
from raybus.dev import cluster as clusters
from raybus.dev.cluster import ClusterOptions
from raybus.dev.commands import describe
from raybus.dev.errors import DevError
from raybus.dev.gotools import ensure_tools
from raybus.dev.kubectl import Kubectl
from raybus.dev.paths import repository
from raybus.dev.stack import Stack

JOB, NAMESPACE, SAMPLE = "pi", "default", "rayjob-pi.yaml"
PROOF = "Ray node(s)"
"""Words of the sample's last line: only a program that ran on Ray prints them."""
DEADLINE = 600.0
"""Seconds that the job may take, image start included."""
SIMULATED_DEADLINE = 120.0
LOOK = 1.0
"""Seconds between two looks: each costs a tenth of a second of CPU, which Ray needs for its start."""

Until = Callable[[dict[str, Any], list[dict[str, Any]]], bool]

out = Console(highlight=False)


def demo(*, cluster: str = "dev") -> None:
    """Bring up a cluster and Raybus, run a real RayJob, show its stages and its log.

    Ends with `demo: SUCCEEDED in N s`, or with `demo: SIMULATED` where only simulated nodes are possible.

    Parameters
    ----------
    cluster: Name of the development cluster to use.
    """
    ready = clusters.up(ClusterOptions(name=cluster))
    out.print(describe(ready), soft_wrap=True)
    if not ready.real_node:
        out.print("This machine cannot run containers: pods are simulated and no Ray program will run.")
    kubectl = Kubectl(ensure_tools(["kubectl"])["kubectl"], ready.kubeconfig)
    stack = make_stack(cluster, {}, {})
    # Ctrl-C raises by itself; whoever ends us in another way must not leave processes behind either.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda got, _: sys.exit(128 + got))
    begun = time.monotonic()
    try:
        stack.start()
        stack.wait_ready()
        out.print(f"Raybus is ready: {len(stack.procs)} processes, logs in {stack.folder}", soft_wrap=True)
        seconds = _run(kubectl, stack) - begun
    finally:
        stack.stop()
        down = f"raybus cluster down --name {cluster}"
        out.print(f"Raybus is stopped; the cluster {cluster} stays up (`{down}` ends it)", soft_wrap=True)
    out.print(f"demo: SUCCEEDED in {seconds:.0f} s" if ready.real_node else "demo: SIMULATED")


def _run(kubectl: Kubectl, stack: Stack) -> float:
    """The job from beginning to end; nothing of it is left. Returns when it ended, by the monotonic clock.

    Raises DevError when it did not do what it should.
    """
    sample = _sample()
    _remove(kubectl)
    kubectl("apply", "-n", NAMESPACE, "-f", str(sample))
    out.print(f"applied {sample.name}: RayJob {NAMESPACE}/{JOB}")
    try:
        if stack.cluster.real_node:
            _judge(kubectl, _watch(kubectl, stack, DEADLINE, until=_ended))
        else:
            _watch(kubectl, stack, SIMULATED_DEADLINE, until=_submitted)
        return time.monotonic()
    except DevError:
        _explain(stack)
        raise
    finally:
        # While the services run: the RayJob has a finalizer that they take off.
        _clean_up(kubectl)


def _judge(kubectl: Kubectl, job: dict[str, Any]) -> None:
    """Print the log of the ended job. Raises DevError unless the job succeeded, really on Ray."""
    status, log = job["status"], kubectl("logs", "-n", NAMESPACE, f"job/{JOB}")
    out.print("log of the submitter:", style="bold")
    out.print("\n".join("    " + line for line in log.splitlines()), markup=False, soft_wrap=True)
    if status.get("jobStatus") != "SUCCEEDED":
        raise DevError(f"RayJob {NAMESPACE}/{JOB} ended {status.get('jobStatus')}: {status.get('message', '')}")
    _prove(kubectl, log)


def _explain(stack: Stack) -> None:
    """Print why the job is where it is, if somebody can be asked."""
    out.print(f"raybus explain rayjob/{JOB}:", style="bold")
    try:
        lines = asyncio.run(explanation(stack.cluster.name, Target("rayjob", NAMESPACE, JOB)))
    except (UsageError, BusError) as error:
        lines = [str(error)]
    for line in lines:
        out.print("    " + line, markup=False, soft_wrap=True)


def _clean_up(kubectl: Kubectl) -> None:
    """Delete the job; that it cannot be deleted must not hide why the demo ended."""
    try:
        _remove(kubectl)
    except DevError as error:
        out.print(f"RayJob {NAMESPACE}/{JOB} is left behind: {error}", markup=False, soft_wrap=True)


def _remove(kubectl: Kubectl) -> None:
    """Delete the job, if there is one; Kubernetes deletes what it owns, pods included."""
    kubectl("delete", "rayjob", JOB, "-n", NAMESPACE, "--ignore-not-found", "--timeout=60s")


def _sample() -> Path:
    root = repository()
    if root is None:
        raise DevError("The samples are part of the repository: run the demo from a checkout.")
    return root / "samples" / SAMPLE


def _watch(kubectl: Kubectl, stack: Stack, seconds: float, until: Until) -> dict[str, Any]:
    """Print each new stage until `until(job, objects)`; returns the job.

    Raises DevError when that takes too long, the job disappears or a service ends.
    """
    begun, shown = time.monotonic(), set[str]()
    while True:
        objects = kubectl.json("get", "rayjobs,rayclusters,pods,jobs", "-n", NAMESPACE)["items"]
        job = next((o for o in objects if o["kind"] == "RayJob" and o["metadata"]["name"] == JOB), None)
        if job is None:
            raise DevError(f"RayJob {NAMESPACE}/{JOB} was deleted by somebody before it ended.")
        for line in _stages(job, objects):
            if line not in shown:
                shown.add(line)
                out.print(f"{time.monotonic() - begun:6.1f} s  {line}", markup=False)
        if until(job, objects):
            return cast(dict[str, Any], job)
        if ended := stack.ended():
            raise DevError(ended[0])
        if time.monotonic() - begun > seconds:
            raise DevError(f"RayJob {NAMESPACE}/{JOB} has not ended after {seconds:.0f} s.")
        time.sleep(LOOK)


def _stages(job: dict[str, Any], objects: list[dict[str, Any]]) -> Iterator[str]:
    status = job.get("status", {})
    cluster = status.get("rayClusterName", "")
    if phase := status.get("jobDeploymentStatus"):
        yield f"RayJob is {phase}" + (f", Ray says {s}" if (s := status.get("jobStatus")) else "")
    for item in objects:
        meta = item["metadata"]
        if item["kind"] == "RayCluster" and meta["name"] == cluster:
            yield f"RayCluster {meta['name']} " + (item.get("status", {}).get("state") or "is being created")
        if item["kind"] == "Pod" and _belongs(meta, cluster):
            waiting = [
                c["state"]["waiting"] for c in item["status"].get("containerStatuses", []) if "waiting" in c["state"]
            ]
            state = waiting[0].get("reason", "waiting") if waiting else item["status"]["phase"]
            where = item["spec"].get("nodeName", "no node yet")
            yield f"Pod {meta['name']} {state} on {where}"
        if item["kind"] == "Job" and meta["name"] == JOB:
            yield f"submitter Job {meta['name']} created"


def _belongs(meta: dict[str, Any], cluster: str) -> bool:
    labels: dict[str, str] = meta.get("labels", {})
    return (cluster != "" and labels.get("ray.io/cluster") == cluster) or labels.get(
        "batch.kubernetes.io/job-name"
    ) == JOB


def _ended(job: dict[str, Any], _: list[dict[str, Any]]) -> bool:
    return job.get("status", {}).get("jobDeploymentStatus") in ("Complete", "Failed", "ValidationFailed")


def _submitted(job: dict[str, Any], objects: list[dict[str, Any]]) -> bool:
    return any(item["kind"] == "Job" and item["metadata"]["name"] == JOB for item in objects) or _ended(job, objects)


def _prove(kubectl: Kubectl, log: str) -> None:
    """Raise DevError unless the pods ran on a kubelet and the program's own words came back from Ray."""
    pods = [p for p in kubectl.json("get", "pods", "-n", NAMESPACE)["items"] if JOB in p["metadata"]["name"]]
    nodes = {pod["spec"].get("nodeName") for pod in pods}
    for node in (n for n in kubectl.json("get", "nodes")["items"] if n["metadata"]["name"] in nodes):
        runtime = node["status"]["nodeInfo"]["containerRuntimeVersion"]
        if not runtime.startswith(("containerd://", "cri-o://", "docker://")):
            raise DevError(f"Pods ran on {node['metadata']['name']}, which is no real node (runtime {runtime!r}).")
    if not nodes or PROOF not in log:
        raise DevError(f"The log does not hold what the program prints on Ray ({PROOF!r}).")
