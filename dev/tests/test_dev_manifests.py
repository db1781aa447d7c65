"""Command lines, configuration files and manifests of a cluster, as data."""

import json
from pathlib import Path

import pytest
import yaml

from raybus.dev import components, node_config
from raybus.dev.cgroups import hierarchies
from raybus.dev.choice import Provider
from raybus.dev.cluster import Cluster
from raybus.dev.commands import describe
from raybus.dev.control_plane import SERVICES, binding
from raybus.dev.gotools import TOOLS, linker_flags
from raybus.dev.images.library import present
from raybus.dev.layout import Layout
from raybus.dev.network import inside
from raybus.dev.node import mounts_below
from raybus.dev.paths import repository
from raybus.dev.simulated import node_manifests
from raybus.dev.site import Site

PORTS = {"etcd-client": 1, "etcd-peer": 2, "apiserver": 3}
PROGRAMS = {name: Path("/bin") / name for name in TOOLS}
BARE = Site("b", Path("/c/b"), Layout(PORTS, 5), has_node=False)
NODE = Site("n", Path("/c/n"), Layout(PORTS, 5), has_node=True)


def test_without_a_node_everything_listens_on_loopback() -> None:
    argv = components.apiserver(BARE, PROGRAMS).argv
    assert BARE.server == "https://127.0.0.1:3"
    assert "--bind-address=127.0.0.1" in argv
    assert all("127.0.0.1" in part for part in components.etcd(BARE, PROGRAMS).argv if "urls" in part)


def test_an_audited_cluster_has_its_log_and_stores_json() -> None:
    argv = components.apiserver(BARE, PROGRAMS, audited=True).argv
    assert {f"--audit-log-path={BARE.audit_log}", "--storage-media-type=application/json"} <= set(argv)
    assert not any("audit" in part for part in components.apiserver(BARE, PROGRAMS).argv)


def test_with_a_node_the_api_server_listens_on_its_link_only() -> None:
    argv = components.apiserver(NODE, PROGRAMS).argv
    assert {"--bind-address=10.133.0.1", "--service-cluster-ip-range=10.101.0.0/16"} <= set(argv)


@pytest.mark.parametrize(("bare", "controllers"), [(True, 4), (False, 1)])
def test_a_bare_cluster_has_only_the_controllers_of_the_recordings(bare: bool, controllers: int) -> None:
    argv = components.controller_manager(BARE, PROGRAMS, bare).argv
    flag = next(part for part in argv if part.startswith("--controllers="))
    assert len(flag.split(",")) == controllers


def test_the_node_lives_in_its_own_network_and_control_group() -> None:
    kubelet = inside(NODE, node_config.kubelet(NODE, PROGRAMS))
    assert kubelet.argv[1:3] == ("--net=/run/netns/raybus-n", "/bin/kubelet")
    files = {path.name: text for path, text in node_config.files(NODE).items()}
    settings = yaml.safe_load(files["kubelet.yaml"])
    assert settings["cgroupRoot"] == "/raybus-n"
    assert settings["clusterDNS"] == ["10.69.0.1"]
    assert json.loads(files["10-raybus.conflist"])["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.69.0.0/16"}]]
    assert "bind 10.69.0.1" in files["Corefile"]


@pytest.mark.parametrize("tainted", [False, True])
def test_simulated_nodes(tainted: bool) -> None:
    nodes = list(yaml.safe_load_all(node_manifests(3, tainted)))
    assert [node["metadata"]["name"] for node in nodes] == ["kwok-1", "kwok-2", "kwok-3"]
    assert all(bool(node["spec"].get("taints")) is tainted for node in nodes)


@pytest.mark.parametrize("service", SERVICES)
def test_each_role_is_bound_to_its_own_service(service: str) -> None:
    root = repository()
    assert root is not None
    role = yaml.safe_load((root / "charts" / "raybus" / "rbac" / f"{service}.yaml").read_text())
    bound = yaml.safe_load(binding(service))
    assert bound["roleRef"]["name"] == role["metadata"]["name"] == f"raybus-{service}"
    assert [subject["name"] for subject in bound["subjects"]] == [f"raybus:{service}"]


def test_no_role_holds_a_wildcard() -> None:
    root = repository()
    assert root is not None
    for file in (root / "charts" / "raybus" / "rbac").glob("*.yaml"):
        assert "*" not in json.dumps(yaml.safe_load(file.read_text())["rules"])


def test_the_version_is_linked_into_kubernetes_only() -> None:
    assert "gitVersion=v1.36.2" in linker_flags(TOOLS["kubelet"])
    assert linker_flags(TOOLS["etcd"]) == "-s -w"


def test_mounts_are_undone_from_the_inside() -> None:
    table = "proc /proc proc\nt /r/n tmpfs\nt /r/n/a/b tmpfs\nt /r/n/a tmpfs\nt /r/nothing tmpfs\n"
    assert mounts_below(table, [Path("/r/n")]) == ["/r/n/a/b", "/r/n/a", "/r/n"]


def test_control_group_hierarchies_by_version() -> None:
    table = "t /sys/fs/cgroup tmpfs\nc /sys/fs/cgroup/cpu cgroup rw\nc /sys/fs/cgroup/unified cgroup2 rw\n"
    assert hierarchies(table, "cgroup") == [Path("/sys/fs/cgroup/cpu")]
    assert hierarchies(table, "cgroup2") == [Path("/sys/fs/cgroup/unified")]


def test_images_of_a_node_are_known_by_name_and_digest() -> None:
    listing = "REF TYPE DIGEST SIZE\nregistry/pause:3 application/x sha256:aa 1 MiB linux -\n\n"
    assert present(listing) == {("registry/pause:3", "sha256:aa")}


@pytest.mark.parametrize(
    ("real", "simulated", "bare", "says"),
    [
        (True, 0, False, "(a real node)"),
        (True, 2, False, "(a real node and 2 simulated ones)"),
        (False, 2, False, "(2 simulated nodes)"),
        (False, 0, True, "(bare, without nodes)"),
        (False, 0, False, "(its own nodes)"),
    ],
)
def test_what_runs_is_said_in_words(
    real: bool, simulated: int, bare: bool, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    admin = tmp_path / "raybus" / "clusters" / "x" / "kubeconfig" / "admin.yaml"
    admin.parent.mkdir(parents=True)
    admin.touch()
    text = describe(Cluster("x", Provider.LOCAL, "https://a:1", real, simulated, bare))
    assert says in text and str(admin) in text
