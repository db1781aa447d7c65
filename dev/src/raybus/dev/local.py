"""A Kubernetes of our own on this machine: control plane, and a real node or simulated ones."""

from pathlib import Path

from raybus.dev import node
from raybus.dev.choice import Machine, obstacle_to_real_node
from raybus.dev.control_plane import apply_api_objects, start_control_plane, write_credentials
from raybus.dev.gotools import ensure_tools
from raybus.dev.kubectl import Kubectl
from raybus.dev.layout import ensure_layout
from raybus.dev.network import make_network
from raybus.dev.options import ClusterOptions
from raybus.dev.process import running, stop
from raybus.dev.progress import say, step
from raybus.dev.simulated import add_simulated_nodes
from raybus.dev.site import Site

# In this order they are stopped: whoever writes goes before whoever stores.
COMPONENTS = (
    "kwok",
    "kubelet",
    "kube-proxy",
    "coredns",
    "containerd",
    "kube-scheduler",
    "kube-controller-manager",
    "kube-apiserver",
    "etcd",
)
_FALLBACK_NODES = 3
# Short: what the components would write down before they end is thrown away anyway.
_GRACE_S = 2.0


def up(options: ClusterOptions, folder: Path, machine: Machine) -> Site:
    """Bring up the local cluster in `folder`; where a real node is impossible, with simulated ones, saying so.

    Raises `DevError` when a prerequisite is missing or a component does not come up.
    """
    run = folder / "run"
    has_node = options.wants_real_node()
    obstacle = obstacle_to_real_node(machine) if has_node else None
    if obstacle:
        say(f"Simulated nodes only: {obstacle}.")
        has_node = False
    idle = all(running(run, name) is None for name in COMPONENTS)
    site = Site(options.name, folder, ensure_layout(folder, idle), has_node)
    tools = ensure_tools(_tools(options.bare, has_node, simulated_count(options, site)))
    if has_node:
        node.install_packages(machine.missing)
        make_network(site)
    write_credentials(site)
    start_control_plane(site, tools, options)
    kubectl = Kubectl(tools["kubectl"], site.kubeconfig("admin"))
    apply_api_objects(kubectl, options.bare)
    if has_node:
        node.add_real_node(site, tools, kubectl)
    if count := simulated_count(options, site):
        add_simulated_nodes(site, tools, kubectl, count)
    return site


def down(name: str, folder: Path) -> None:
    """End all components of the cluster in `folder` and remove what its node has left on the machine."""
    if not (folder / "cluster.json").exists():
        return
    site = Site(name, folder, ensure_layout(folder, idle=False), (folder / "node").exists())
    with step(f"stopping the cluster {name}"):
        for component in COMPONENTS:
            if component == "containerd" and site.has_node:
                node.end_containers(site)
            stop(site.run, component, _GRACE_S)
        if site.has_node:
            node.clean_up(site)


def simulated_count(options: ClusterOptions, site: Site) -> int:
    """Number of simulated nodes: as asked, and a few in place of a real node that is impossible here."""
    replaces_node = options.wants_real_node() and not site.has_node
    return options.kwok_nodes or (_FALLBACK_NODES if replaces_node else 0)


def _tools(bare: bool, has_node: bool, simulated: int) -> list[str]:
    """Programs that such a cluster needs; nothing else is built."""
    return [
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kubectl",
        *([] if bare else ["kube-scheduler"]),
        *(["kwok"] if simulated else []),
        *(["kubelet", "kube-proxy", "coredns", "pause"] if has_node else []),
    ]
