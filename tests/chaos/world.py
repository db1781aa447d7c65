"""The cluster `chaos`, and Raybus on it as faults need it: replicas, proxies, an administrator of the bus."""

import asyncio
import json
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from raybus.bus.server_config import Server
from raybus.dev.cluster import Cluster, ClusterOptions, up
from raybus.dev.paths import cluster_dir
from raybus.dev.process import Component, running, start
from raybus.dev.stack import NATS, SERVICES, Stack, process_name

NAME = "chaos"
NODES = 10
ADMINISTRATOR = "administrator"
"""User and password of the one user of the bus without limits, who exists only here."""
STORE = 640 << 20
"""Bytes that the bus may store; TIMELINE sets aside 512 MiB of them."""
API_SERVER, CONTROLLERS = "kube-apiserver", "kube-controller-manager"
LOOK = 2.0
ITS_CLIENTS = (CONTROLLERS, "kube-scheduler", "kwok")
TALKERS = tuple(service for service, credential in SERVICES.items() if credential)


def bring_up() -> Cluster:
    """The audited cluster with simulated nodes."""
    return up(ClusterOptions(name=NAME, kwok_nodes=NODES, audited=True))


def etcd_url(cluster: Cluster) -> str:
    """Where etcd of the cluster answers."""
    ports = json.loads((cluster.folder / "cluster.json").read_text())["ports"]
    return f"http://127.0.0.1:{ports['etcd-client']}"


def certificate(cluster: Cluster) -> tuple[Path, Path]:
    """The API server's own certificate and key."""
    return cluster.folder / "pki" / "apiserver.crt", cluster.folder / "pki" / "apiserver.key"


@dataclass
class ChaosStack(Stack):
    """`through`: process name -> kubeconfig that leads through its proxy."""

    through: Mapping[str, Path] = field(default_factory=dict)

    def kubeconfig(self, name: str, service: str) -> Path:
        return self.through[name]

    def bus_server(self, number: int) -> Server:
        return super().bus_server(number)._replace(max_file_store=STORE)

    def bus_config(self, number: int) -> str:
        config = json.loads(super().bus_config(number))
        config["authorization"]["users"].append({"user": ADMINISTRATOR, "password": ADMINISTRATOR})
        return json.dumps(config, indent=2)

    def names(self, service: str) -> list[str]:
        """The processes of a service, running or not."""
        return [process_name(service, number) for number in range(self.replicas.get(service, 1))]

    def restart(self, name: str) -> None:
        """Start the process `name`, which has ended, anew."""
        base, _, number = name.rpartition("-")
        service, count = (base, int(number)) if number.isdecimal() else (name, 0)
        if service == NATS:
            self.start_bus(count)
        else:
            self.start_service(service, count)

    def end(self) -> None:
        """Stop everything, also what still stands."""
        for proc in self.procs.values():
            if proc.popen.poll() is None:
                proc.popen.send_signal(signal.SIGCONT)
        self.stop()


class ApiServer:
    """The API server's process, which can go away and come back, and those that cannot do without it."""

    def __init__(self, cluster: Cluster) -> None:
        self._run = cluster_dir(cluster.name) / "run"
        self._known: dict[str, Component] = {}
        for name in (API_SERVER, *ITS_CLIENTS):
            argv = Path(f"/proc/{cluster.pids[name]}/cmdline").read_text().rstrip("\0").split("\0")
            self._known[name] = Component(name, tuple(argv))

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        self._kill(API_SERVER)

    def back(self) -> None:
        """Start it again with the same command line; it listens a few seconds later."""
        start(self._known[API_SERVER], self._run)

    def restart_controllers(self) -> None:
        """What an outage does to the controllers of Kubernetes: they lose their lease, end, and begin anew. These here
        have none, and their garbage collector would never notice what was deleted while it did not watch a kind."""
        self._kill(CONTROLLERS)

    async def supervise(self) -> None:
        """Start again what ends by itself without an API server, as a kubelet does; until cancelled."""
        while True:
            for name, component in self._known.items():
                if name != API_SERVER:
                    await asyncio.to_thread(start, component, self._run)
            await asyncio.sleep(LOOK)

    def _kill(self, name: str) -> None:
        while (record := running(self._run, name)) is not None:
            os.kill(record.pid, signal.SIGKILL)
            time.sleep(0.02)
