"""Bad configuration: one clear line on standard error and exit status 2, before anything is touched."""

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bare_world import BareWorld, ray_cluster
from stacks import OUTSIDE

from raybus.bus import connect
from raybus.bus import jetstream as js
from raybus.bus.errors import StreamMismatch
from raybus.bus.streams import STREAMS, TIMELINE_BYTES, ensure_streams, keep_streams, keep_to_cluster
from raybus.dev.cluster import Cluster
from raybus.dev.errors import DevError
from raybus.dev.stack import SERVICES, Stack
from raybus.testkit.nats_server import CLUSTER, NatsServer

OTHER = "11111111-1111-4111-8111-111111111111"
"""The UID of another cluster's kube-system."""


def run(service: str, environment: Mapping[str, str], *arguments: str) -> str:
    """The one line with which a service refuses to run; it must be one, the exit status 2, and no traceback."""
    base = {k: v for k, v in os.environ.items() if k != "KUBECONFIG" and not k.startswith("RAYBUS_")}
    done = subprocess.run(
        [sys.executable, "-m", f"raybus.{service.replace('-', '_')}", *arguments],
        env=base | {"RAYBUS_METRICS_ADDR": "0"} | dict(environment),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2, done
    assert done.stderr.count("\n") == 1 and done.stderr.startswith(f"{service}: "), done.stderr
    assert "Traceback" not in done.stdout
    return done.stderr.strip()


# ------------------------------------------------------------------ settings: the bus is not even connected to
SETTINGS: list[tuple[str, str, str]] = [
    *((service, "--no-such-flag=1", r"unknown flag --no-such-flag; known are: --") for service in SERVICES),
    ("watcher", "--stream-replicas=2", r"stream_replicas \(flag --stream-replicas\)"),
    ("watcher", "--config=/nowhere.yaml", r"settings file /nowhere\.yaml cannot be read"),
    ("cluster-ctl", "--feature-gates=Nonsense=true", r"feature gate 'Nonsense' is unknown"),
    ("cluster-ctl", "start", r"unexpected argument 'start'"),
    ("job-ctl", "--log-level=loud", r"loud"),
    ("serve-ctl", "--nats-url=http://bus", r"is no address of a bus"),
    ("applier", "--max-in-flight=many", r"max_in_flight \(flag --max-in-flight\)"),
    ("applier", "--max-in-flight=0", r"max-in-flight: 0 is too small, it must be at least 1"),
    ("applier", "--max-held=-1", r"max-held: -1 is too small"),
    ("prober", "--max-calls=0", r"max-calls: 0 is too small"),
]


@contextmanager
def nobody() -> Iterator[tuple[str, list[str]]]:
    """(URL, visitors) of a port on which nobody may call."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        visitors: list[str] = []

        def answer() -> None:
            while True:
                try:
                    visitors.append(str(listener.accept()[1]))
                except OSError:
                    return

        threading.Thread(target=answer, daemon=True).start()
        yield f"nats://127.0.0.1:{listener.getsockname()[1]}", visitors
        listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(("service", "argument", "words"), SETTINGS)
def test_a_setting_that_makes_no_sense_is_named_before_the_bus_is_called(
    service: str, argument: str, words: str
) -> None:
    with nobody() as (url, visitors):
        assert re.search(words, run(service, {"RAYBUS_NATS_URL": url}, argument))
    assert visitors == []


# ------------------------------------------------------------------ a bus that is not ours
def on_bus(server: NatsServer, service: str) -> dict[str, str]:
    return {"RAYBUS_NATS_URL": server.url, "RAYBUS_NATS_PASSWORD": service}


async def make_streams(server: NatsServer, cluster: str) -> None:
    watcher = await connect(server.settings("watcher"))
    await ensure_streams(watcher, cluster)
    await watcher.close()


async def remark(server: NatsServer, mark: str, value: str) -> None:
    """Write another value into the metadata of every stream, as a different Raybus would have done."""
    for name in STREAMS:
        info = msgspec.json.decode(await server.administrate(f"{js.API}.STREAM.INFO.{name}"))
        config = info["config"] | {"metadata": info["config"]["metadata"] | {mark: value}}
        answer = await server.administrate(f"{js.API}.STREAM.UPDATE.{name}", js.encode(config))
        assert b'"error"' not in answer


async def everything(server: NatsServer) -> list[Any]:
    """All streams as they are: settings, messages, consumers."""
    listed = msgspec.json.decode(await server.administrate(f"{js.API}.STREAM.LIST"))
    return [(s["config"], s["state"]) for s in listed["streams"] or ()]


MARKS = [
    ("raybus-partitions", "8", r"stream VIEW .*'raybus-partitions': '8'.*needed is .*'raybus-partitions': '16'"),
    ("raybus-schema", "2", r"stream VIEW .*'raybus-schema': '2'.*needed is .*'raybus-schema': '1'"),
]


@contextmanager
def api_server(folder: Path, uid: str) -> Iterator[tuple[Path, list[str]]]:
    """(kubeconfig, requests) of an API server that knows nothing but its kube-system."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            requests.append(self.path)
            body = json.dumps({"metadata": {"uid": uid}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    config = folder / "kubeconfig.yaml"
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    lists = {"clusters": [cluster], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}
    users = {"users": [{"name": "u", "user": {}}]}
    config.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", "current-context": "c"} | lists | users))
    try:
        yield config, requests
    finally:
        server.shutdown()
        server.server_close()


KUBE_SYSTEM = "/api/v1/namespaces/kube-system"


def refused(service: str, server: NatsServer, kubeconfig: Path) -> str:
    """The line with which a service that talks to this API server refuses this bus."""
    more = {"KUBECONFIG": str(kubeconfig)} if SERVICES[service] else {}
    return run(service, on_bus(server, service) | more | OUTSIDE)


@pytest.mark.parametrize("mark", MARKS, ids=lambda mark: mark[0])
@pytest.mark.parametrize("service", SERVICES)
async def test_streams_of_another_raybus_are_refused_and_left_as_they_are(
    nats_server: NatsServer, tmp_path: Path, service: str, mark: tuple[str, str, str]
) -> None:
    name, value, words = mark
    await make_streams(nats_server, CLUSTER)
    await remark(nats_server, name, value)
    before = await everything(nats_server)
    with api_server(tmp_path, CLUSTER) as (kubeconfig, requests):
        line = await asyncio.to_thread(refused, service, nats_server, kubeconfig)
    assert re.search(words, line), line
    assert await everything(nats_server) == before
    assert set(requests) == ({KUBE_SYSTEM} if SERVICES[service] else set())


@pytest.mark.parametrize("service", ["watcher", "applier", "prober"])
async def test_the_bus_of_another_cluster_is_refused_and_left_as_it_is(
    nats_server: NatsServer, tmp_path: Path, service: str
) -> None:
    await make_streams(nats_server, OTHER)
    before = await everything(nats_server)
    with api_server(tmp_path, CLUSTER) as (kubeconfig, requests):
        line = await asyncio.to_thread(refused, service, nats_server, kubeconfig)
    assert f"is about another Kubernetes cluster (UID of its kube-system: {OTHER}, ours: {CLUSTER})" in line
    assert line.endswith("give each cluster a bus of its own")
    assert await everything(nats_server) == before
    assert set(requests) == {KUBE_SYSTEM}


async def test_of_two_clusters_on_an_empty_bus_one_gets_it(nats_server: NatsServer) -> None:
    results = await asyncio.gather(
        *(make_streams(nats_server, uid) for uid in (CLUSTER, OTHER)), return_exceptions=True
    )
    refusals = [result for result in results if result is not None]
    assert len(refusals) == 1 and isinstance(refusals[0], StreamMismatch)


async def test_a_bus_that_another_cluster_takes_after_a_wipe_is_left_at_once(nats_server: NatsServer) -> None:
    """The watcher and whoever else talks to Kubernetes look again every second."""
    await make_streams(nats_server, CLUSTER)
    watcher, applier = [await connect(nats_server.settings(user)) for user in ("watcher", "applier")]
    looking = [asyncio.create_task(c) for c in (keep_streams(watcher, CLUSTER), keep_to_cluster(applier, CLUSTER))]
    await remark(nats_server, "raybus-cluster", OTHER)
    async with asyncio.timeout(10):
        ends = await asyncio.gather(*looking, return_exceptions=True)
    assert all(isinstance(end, StreamMismatch) for end in ends)
    for bus in (watcher, applier):
        await bus.close()


async def test_a_second_cluster_on_a_busy_bus_disturbs_nobody(stack: Stack, world: BareWorld, tmp_path: Path) -> None:
    with api_server(tmp_path, OTHER) as (kubeconfig, _):
        for service in ("watcher", "applier"):
            bus = {"RAYBUS_NATS_URL": stack.nats_url, "RAYBUS_NATS_PASSWORD": stack.passwords[service]}
            line = await asyncio.to_thread(run, service, bus | {"KUBECONFIG": str(kubeconfig)})
            assert "is about another Kubernetes cluster" in line
    world.apply(ray_cluster("c"))
    world.pods_ready(2)
    world.wait("a ready cluster", lambda: world.status("rayclusters", "c").get("state") == "ready")
    assert stack.ended() == [] and stack.problems() == []


# ------------------------------------------------------------------ a server that is not fit
@contextmanager
def nats_look_alike(info: bytes, answer: bytes) -> Iterator[str]:
    """The URL of something that speaks NATS and gives the same answer to every request."""

    def serve(connection: socket.socket) -> None:
        with connection, connection.makefile("rwb") as lines:
            lines.write(b'INFO {"headers":true,"max_payload":1048576,%s}\r\n' % info)
            lines.flush()
            inbox = b""
            while line := lines.readline():
                words = line.split()
                if words[0] == b"PING":
                    lines.write(b"PONG\r\n")
                elif words[0] == b"SUB":
                    inbox = words[2]
                elif words[0] == b"PUB":
                    lines.read(int(words[-1]) + 2)
                    lines.write(answer % (words[2], inbox))
                lines.flush()

    def accept() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        yield f"nats://127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


OLD = b'{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"api":{"total":1,"errors":0}}'
UNFIT = {
    "too old": (
        b'"version":"2.9.10","jetstream":true',
        b"MSG %s %s " + str(len(OLD)).encode() + b"\r\n" + OLD + b"\r\n",
        "nats-server is too old: JetStream API level unknown, needed is 5 (nats-server 2.15 or newer",
    ),
    "no JetStream": (
        b'"version":"2.15.1"',
        b"HMSG %s %s 16 16\r\nNATS/1.0 503\r\n\r\n\r\n",
        "nats-server runs without JetStream; start it with `jetstream {}`",
    ),
}
"""What a server says of itself, what it answers, and what its user is told."""


@pytest.mark.parametrize("what", UNFIT)
@pytest.mark.parametrize("service", SERVICES)
def test_an_unfit_server_is_named(service: str, what: str, tmp_path: Path) -> None:
    info, answer, words = UNFIT[what]
    with nats_look_alike(info, answer) as url, api_server(tmp_path, CLUSTER) as (kubeconfig, _):
        more = {"KUBECONFIG": str(kubeconfig)} if SERVICES[service] else {}
        assert words in run(service, {"RAYBUS_NATS_URL": url} | more | OUTSIDE)


# ------------------------------------------------------------------ no disk
async def test_a_store_without_room_for_the_streams_is_said_at_once(tmp_path: Path) -> None:
    server = NatsServer(tmp_path, max_file_store=TIMELINE_BYTES // 2)
    server.start()
    try:
        with api_server(tmp_path, CLUSTER) as (kubeconfig, _):
            line = await asyncio.to_thread(refused, "watcher", server, kubeconfig)
    finally:
        server.kill()
    assert re.search(r"no room for stream TIMELINE: .*; give JetStream at least 1024 MB \(max_file_store\)", line), line


@pytest.fixture
def small_volume(tmp_path: Path) -> Iterator[Path]:
    """A volume of 16 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)], check=True)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_the_stack_of_processes_refuses_a_volume_without_room(bare_cluster: Cluster, small_volume: Path) -> None:
    with pytest.raises(DevError, match=r"No room for the bus: the volume of .* has 16 MB free, needed are 1024"):
        Stack(bare_cluster, small_volume / "run").start()
    assert list(small_volume.iterdir()) == []


def test_the_stack_of_processes_refuses_a_place_that_is_no_folder(bare_cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DevError, match=r"file is not a folder that we may write into"):
        Stack(bare_cluster, tmp_path / "file" / "run").start()
