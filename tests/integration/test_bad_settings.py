"""What a service says of settings it cannot run with: one line on standard error and status 2; nothing else."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest
from processes import on_bus, process

from raybus.dev.cluster import Cluster
from raybus.dev.kubectl import Kubectl
from raybus.testkit.nats_server import NatsServer

CRD = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "podgroups.scheduling.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"},
    },
    "spec": {
        "group": "scheduling.x-k8s.io",
        "scope": "Namespaced",
        "names": {"kind": "PodGroup", "plural": "podgroups"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


def refused(service: str, environment: dict[str, str], *arguments: str) -> str:
    """The one line with which the service ends."""
    base = {k: v for k, v in os.environ.items() if k != "KUBECONFIG"} | {"RAYBUS_METRICS_ADDR": "127.0.0.1:0"}
    command = [sys.executable, "-m", f"raybus.{service.replace('-', '_')}", *arguments]
    done = subprocess.run(command, env=base | environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith(f"{service}: ") and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("--reconcile=3", "unknown flag --reconcile; known are: --"),
        ("--feature-gates=RayCronJobs=true", "feature gate 'RayCronJobs' is unknown; known are "),
        ("--log-stdout-encoder=xml", "log_stdout_encoder (flag --log-stdout-encoder): Invalid enum value 'xml'"),
        ("--zap-log-level=loud", "log level 'loud' is not one of debug, info, warning, error"),
        ("--metrics-addr=nowhere", "metrics-addr: 'nowhere' is no host:port"),
        ("--nats-url=http://bus", "'http://bus' is no address of a bus; it is written nats://<host>:<port>"),
        ("--config=/nowhere.yaml", "settings file /nowhere.yaml cannot be read: No such file or directory"),
        ("--nats-ca-file=/nowhere.pem", "cannot read the bus's CA file /nowhere.pem"),
    ],
    ids=["flag", "gate", "choice", "level", "address", "bus address", "file", "certificate"],
)
def test_a_wrong_setting_is_named_before_anything_else_happens(argument: str, says: str) -> None:
    assert says in refused("job-ctl", {"RAYBUS_NATS_URL": "nats://127.0.0.1:9"}, argument)


def test_an_address_that_is_taken_is_named(nats_server: NatsServer) -> None:
    taken = f"127.0.0.1:{nats_server.port}"
    line = refused("job-ctl", on_bus(nats_server, "job-ctl"), f"--metrics-addr={taken}")
    assert "cannot listen" in line and "address already in use" in line and str(nats_server.port) in line


@pytest.mark.parametrize("service", ["watcher", "job-ctl", "applier", "prober"])
def test_a_wrong_password_of_the_bus_is_said_with_what_to_do(nats_server: NatsServer, service: str) -> None:
    line = refused(service, {"RAYBUS_NATS_URL": nats_server.url, "RAYBUS_NATS_PASSWORD": "wrong"})
    assert f"refuses user '{service}': wrong user or password. Check the service's nats user and password" in line
    assert "wrong" not in line.replace("wrong user or password", "")


@pytest.mark.parametrize(
    ("text", "says"),
    [(None, "no kubeconfig"), ("not: [yaml", "cannot be"), ("apiVersion: v1\nkind: Config\n", "context")],
    ids=["missing", "no YAML", "empty"],
)
def test_a_wrong_kubeconfig_is_named(nats_server: NatsServer, tmp_path: Path, text: str | None, says: str) -> None:
    file = tmp_path / "admin.conf"
    if text is not None:
        file.write_text(text)
    line = refused("applier", on_bus(nats_server, "applier"), f"--kubeconfig={file}")
    assert str(file) in line and says in line


def test_credentials_that_the_api_server_does_not_accept_are_named(
    nats_server: NatsServer, tmp_path: Path, bare_cluster: Cluster
) -> None:
    file = tmp_path / "admin.conf"
    server = {"server": bare_cluster.api_server_url, "insecure-skip-tls-verify": True}
    config = {
        **{"apiVersion": "v1", "kind": "Config", "current-context": "c"},
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": server}],
        "users": [{"name": "u", "user": {"token": "expired"}}],
    }
    file.write_text(json.dumps(config))
    line = refused("watcher", on_bus(nats_server, "watcher"), f"--kubeconfig={file}")
    assert "does not accept the credentials of" in line and str(file) in line


def test_a_bus_that_is_down_at_the_start_is_waited_for(tmp_path: Path) -> None:
    server = NatsServer(tmp_path)
    with process("job-ctl", tmp_path, on_bus(server, "job-ctl")) as running:
        running.wait("it says so", lambda: "waiting for the bus: is nats-server running there?" in running.said())
        server.start()
        try:
            running.wait("it goes on", lambda: "waiting for a stream; the watcher makes it" in running.said())
            assert running.terminate() == 0
        finally:
            server.kill()
    assert running.said().count("waiting for the bus") <= 3


class OldServer(StreamRequestHandler):
    """As much of nats-server 2.9 as a service asks of it before it gives up: an account without an API level."""

    INFO = b'INFO {"server_id":"x","version":"2.9.10","headers":true,"max_payload":1048576,"jetstream":true}\r\n'
    ACCOUNT = b'{"type":"io.nats.jetstream.api.v1.account_info_response","memory":0,"api":{"total":1,"errors":0}}'

    def handle(self) -> None:
        self.wfile.write(self.INFO)
        inboxes: dict[bytes, bytes] = {}
        while line := self.rfile.readline():
            verb, *words = line.split()
            match verb.upper():
                case b"PING":
                    self.wfile.write(b"PONG\r\n")
                case b"SUB":
                    inboxes[words[0]] = words[-1]
                case b"PUB" | b"HPUB":
                    self.rfile.read(int(words[-1]) + 2)
                    if words[0] == b"$JS.API.INFO":
                        self._answer(words[1], inboxes)

    def _answer(self, reply: bytes, inboxes: dict[bytes, bytes]) -> None:
        number = next(n for subject, n in inboxes.items() if reply.startswith(subject.rstrip(b"*")))
        self.wfile.write(b"MSG %s %s %d\r\n%s\r\n" % (reply, number, len(self.ACCOUNT), self.ACCOUNT))


@pytest.fixture
def old_server() -> Iterator[str]:
    """The URL of a server that is too old."""
    with ThreadingTCPServer(("127.0.0.1", 0), OldServer) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"nats://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_a_nats_server_that_is_too_old_is_refused(old_server: str) -> None:
    line = refused("job-ctl", {"RAYBUS_NATS_URL": old_server})
    assert "nats-server is too old: JetStream API level unknown, needed is 5 (nats-server 2.15 or newer" in line


def test_a_crd_that_is_missing_is_said_once_and_picked_up_when_it_is_there(
    nats_server: NatsServer, tmp_path: Path, bare_cluster: Cluster, kubectl: Kubectl
) -> None:
    settings = {**on_bus(nats_server, "watcher"), "KUBECONFIG": str(bare_cluster.kubeconfig_for("watcher"))}
    missing = "kind is not served by this cluster, it is watched once its CRD is there"
    with process("watcher", tmp_path, settings, "--batch-scheduler=scheduler-plugins") as running:
        running.wait_ready()
        assert running.said().count(missing) == 1 and "podgroups" in running.said()
        kubectl("apply", "-f", "-", stdin=json.dumps(CRD))
        try:
            running.wait("it is watched", lambda: "kind is served now" in running.said(), seconds=40)
        finally:
            kubectl("delete", "crd", "podgroups.scheduling.x-k8s.io")
        assert running.said().count(missing) == 1
