"""Runs `fleet.py` in a process of its own against a control plane."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from planes import Plane

from raybus.dev.cluster import Cluster
from raybus.dev.errors import DevError
from raybus.dev.gotools import ensure_tools
from raybus.dev.kubectl import Kubectl

FLEET = Path(__file__).parent / "fleet.py"


class Fleet(NamedTuple):
    """What `fleet.py` is to do; `rate`: clusters submitted in a second; `prefix`: of their names."""

    n: int = 500
    workers: int = 3
    rate: float = 100
    namespace: str = "bench"
    delete: bool = True
    prefix: str = "c"
    timeout: float = 900


def begin(cluster: Cluster, plane: Plane, fleet: Fleet, out: Path) -> "subprocess.Popen[bytes]":
    """Start one fleet; `finish` waits for it."""
    argv = [sys.executable, str(FLEET), f"--kubeconfig={cluster.kubeconfig}", f"--label={plane.label}"]
    argv += [f"--n={fleet.n}", f"--workers={fleet.workers}", f"--rate={fleet.rate:g}", f"--ns={fleet.namespace}"]
    argv += [f"--prefix={fleet.prefix}", f"--timeout={fleet.timeout:g}", f"--out={out}"]
    argv += ["--delete"] if fleet.delete else []
    argv += ["--pid", *map(str, plane.pids.values()), "--other", *map(str, cluster.pids.values())]
    return subprocess.Popen(argv, stdout=subprocess.DEVNULL)


def finish(process: "subprocess.Popen[bytes]", plane: Plane, out: Path) -> dict[str, Any]:
    """The result, with CPU and memory by process name. Raises DevError when the fleet failed."""
    if process.wait() != 0:
        raise DevError(f"fleet.py ended with status {process.returncode} against {plane.label}; logs: {plane.logs}")
    result: dict[str, Any] = json.loads(out.read_text())
    result["cpu_by"] = dict(zip(plane.pids, result["cpu_s"], strict=True))
    result["rss_by"] = dict(zip(plane.pids, result["rss_mb_end"], strict=True))
    return result


def run(cluster: Cluster, plane: Plane, fleet: Fleet, out: Path) -> dict[str, Any]:
    """One fleet from start to end. Raises DevError."""
    return finish(begin(cluster, plane, fleet, out), plane, out)


def shown(result: Mapping[str, Any]) -> str:
    """The result as JSON, without the series."""
    return json.dumps({key: value for key, value in result.items() if key != "ready_at"}, indent=1)


def remove_namespaces(cluster: Cluster, *names: str) -> None:
    """Delete namespaces with all that is in them, and wait until they are gone: each run starts alike."""
    kubectl = Kubectl(ensure_tools(["kubectl"])["kubectl"], cluster.kubeconfig)
    kubectl("delete", "namespace", *names, "--ignore-not-found", "--wait=true", "--timeout=600s")
