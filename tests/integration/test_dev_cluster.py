"""The development cluster on this machine: up and down as often as one likes, and each service with only its rights."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from raybus.dev.choice import Provider
from raybus.dev.cluster import Cluster, ClusterOptions, down, find, status, up
from raybus.dev.gotools import ensure_tools

AUTOSCALER_ROLE = """
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: autoscaler, namespace: default}
rules:
  - {apiGroups: [""], resources: [pods], verbs: [get, list, watch, patch]}
  - {apiGroups: [""], resources: [pods/resize], verbs: [patch]}
  - {apiGroups: [ray.io], resources: [rayclusters], verbs: [get, patch]}
"""


def kubectl(kubeconfig: Path, *arguments: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    program = ensure_tools(["kubectl"])["kubectl"]
    argv = [str(program), f"--kubeconfig={kubeconfig}", *arguments]
    return subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def bare() -> Iterator[Cluster]:
    name = f"t-bare-{os.getpid()}"
    yield up(ClusterOptions(name=name, bare=True))
    down(name)


@pytest.fixture(scope="module")
def simulated() -> Iterator[Cluster]:
    name = f"t-sim-{os.getpid()}"
    yield up(ClusterOptions(name=name, kwok_nodes=2))
    down(name)


def test_a_second_up_changes_nothing(bare: Cluster) -> None:
    before = bare.pids
    assert set(before) == {"etcd", "kube-apiserver", "kube-controller-manager"}
    assert up(ClusterOptions(name=bare.name, bare=True)) == bare == find(bare.name)
    assert bare.pids == before


def test_a_bare_cluster_has_all_kinds_of_the_recordings(bare: Cluster) -> None:
    names = kubectl(bare.kubeconfig, "get", "crd", "-o", "name").stdout
    for kind in ("rayclusters.ray.io", "rayjobs.ray.io", "rayservices.ray.io", "raycronjobs.ray.io"):
        assert kind in names
    for kind in ("gateways.gateway.networking.k8s.io", "httproutes.gateway.networking.k8s.io"):
        assert kind in names
    for kind in ("certificates.cert-manager.io", "issuers.cert-manager.io", "podgroups.scheduling.volcano.sh"):
        assert kind in names


def test_a_component_that_died_is_seen_and_started_again(bare: Cluster) -> None:
    os.kill(bare.pids["kube-controller-manager"], signal.SIGKILL)
    deadline = time.monotonic() + 10
    while status(bare.name)["kube-controller-manager"] is not None:
        assert time.monotonic() < deadline, "a killed component still counts as running"
        time.sleep(0.02)
    up(ClusterOptions(name=bare.name, bare=True))
    assert bare.pids.keys() == {"etcd", "kube-apiserver", "kube-controller-manager"}


@pytest.mark.parametrize(
    ("service", "verb", "resource", "allowed"),
    [
        ("watcher", "watch", "pods", True),
        ("watcher", "list", "rayjobs.ray.io", True),
        ("watcher", "get", "secrets", True),
        ("watcher", "list", "secrets", False),
        ("watcher", "create", "pods", False),
        ("watcher", "patch", "rayjobs.ray.io/status", False),
        ("applier", "create", "pods", True),
        ("applier", "update", "rayjobs.ray.io/status", True),
        ("applier", "update", "rayclusters.ray.io/finalizers", True),
        ("applier", "create", "events.events.k8s.io", True),
        ("applier", "get", "services", True),
        ("applier", "list", "services", False),
        ("applier", "list", "secrets", False),
        ("applier", "watch", "rayjobs.ray.io", False),
        ("applier", "deletecollection", "pods", False),
        ("prober", "create", "services/proxy", True),
        ("prober", "get", "pods", False),
        ("prober", "list", "secrets", False),
    ],
)
def test_each_service_may_do_its_own_work_only(
    bare: Cluster, service: str, verb: str, resource: str, allowed: bool
) -> None:
    kind, _, subresource = resource.partition("/")
    flag = [f"--subresource={subresource}"] if subresource else []
    done = kubectl(bare.kubeconfig_for(service), "auth", "can-i", verb, kind, *flag)
    assert (done.stdout.strip() == "yes") is allowed, done.stderr


def test_the_applier_can_hand_on_what_the_autoscaler_needs(bare: Cluster) -> None:
    done = kubectl(bare.kubeconfig_for("applier"), "create", "-f", "-", stdin=AUTOSCALER_ROLE)
    assert done.returncode == 0, done.stderr


def test_controllers_have_no_kubeconfig(bare: Cluster) -> None:
    users = {path.stem for path in (bare.folder / "kubeconfig").glob("*.yaml")}
    assert not {user for user in users if user.endswith("-ctl")}


def test_simulated_nodes_run_pods(simulated: Cluster) -> None:
    assert not simulated.real_node
    assert kubectl(simulated.kubeconfig, "run", "one", "--image=none").returncode == 0
    done = kubectl(simulated.kubeconfig, "wait", "--for=condition=Ready", "--timeout=60s", "pod/one")
    assert done.returncode == 0, done.stderr


def test_an_existing_cluster_is_used_by_its_kubeconfig(simulated: Cluster) -> None:
    name = f"t-given-{os.getpid()}"
    given = up(ClusterOptions(name=name, kubeconfig=simulated.kubeconfig))
    assert (given.provider, given.api_server_url, given.pids) == (Provider.GIVEN, simulated.api_server_url, {})
    assert kubectl(given.kubeconfig_for("watcher"), "get", "rayjobs", "-A").returncode == 0
    assert kubectl(given.kubeconfig_for("watcher"), "get", "secrets", "-A").returncode != 0
    assert down(name)
    assert kubectl(simulated.kubeconfig, "get", "rayjobs", "-A").returncode == 0


def test_down_ends_everything_and_the_next_up_is_empty(bare: Cluster) -> None:
    kubectl(bare.kubeconfig, "create", "namespace", "gone-afterwards")
    pids = bare.pids
    assert down(bare.name)
    assert not down(bare.name)
    assert find(bare.name) is None and bare.pids == {}
    assert not [pid for pid in pids.values() if Path(f"/proc/{pid}").exists()]
    assert not bare.folder.exists()
    again = up(ClusterOptions(name=bare.name, bare=True))
    assert kubectl(again.kubeconfig, "get", "namespace", "gone-afterwards").returncode != 0
