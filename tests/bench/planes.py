"""The control planes under test: Raybus as `raybus dev` runs it, KubeRay as one given binary."""

import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from raybus.dev.cluster import Cluster
from raybus.dev.errors import DevError
from raybus.dev.process import direct_environment, end_group
from raybus.dev.stack import Stack, free_port, running


@dataclass(frozen=True)
class Plane:
    """A running control plane. `pids`: all its processes by name, the bus included; `logs`: folder of their logs."""

    label: str
    pids: Mapping[str, int] = field(default_factory=dict)
    logs: Path = Path()
    stack: Stack | None = None


@contextmanager
def raybus(cluster: Cluster, folder: Path, replicas: Mapping[str, int]) -> Iterator[Plane]:
    """All services, ready; ended afterwards."""
    inherited = {name: value for name, value in os.environ.items() if name.startswith("RAYBUS_")}
    stack = Stack(cluster, folder, replicas, {"RAYBUS_USE_KUBERNETES_PROXY": "true", **inherited})
    with running(stack):
        yield Plane("raybus", stack.pids, folder, stack)
        if ended := stack.ended():
            raise DevError("; ".join(ended))


@contextmanager
def kuberay(cluster: Cluster, folder: Path, binary: Path, concurrency: int) -> Iterator[Plane]:
    """KubeRay's operator with its defaults but for the number of workers (contract platform §1)."""
    folder.mkdir(parents=True, exist_ok=True)
    label, health = f"kuberay-c{concurrency}", free_port()
    argv = [
        str(binary),
        "--metrics-addr=0",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        "--enable-leader-election=false",
        f"--reconcile-concurrency={concurrency}",
        f"--kubeconfig={cluster.kubeconfig}",
        "--use-kubernetes-proxy=true",
    ]
    with (folder / f"{label}.log").open("wb") as log:
        process = subprocess.Popen(
            argv, env=direct_environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    try:
        _wait_healthy(process, health, folder / f"{label}.log")
        yield Plane(label, {"operator": process.pid}, folder)
    finally:
        end_group(process.pid)
        process.wait()


def _wait_healthy(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + 60
    while True:
        if process.poll() is not None:
            raise DevError(f"the operator ended with status {process.returncode}; see {log}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=1):  # our own loopback
                # Healthy comes before the caches are filled.
                time.sleep(5)
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise DevError(f"the operator is not healthy after 60 s ({error}); see {log}") from error
        time.sleep(0.2)
