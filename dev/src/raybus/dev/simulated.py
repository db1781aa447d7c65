"""Simulated nodes: kwok plays their kubelets, every pod on them becomes Ready at once."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from raybus.dev import components
from raybus.dev.gotools import module_documents
from raybus.dev.kubectl import Kubectl
from raybus.dev.process import start
from raybus.dev.progress import step
from raybus.dev.site import Site
from raybus.dev.waiting import wait_until

_STAGES = (
    "kustomize/stage/pod/fast/pod-*.yaml",
    "kustomize/stage/node/fast/node-initialize.yaml",
    "kustomize/stage/node/heartbeat-with-lease/node-heart*.yaml",
)


def node_manifests(count: int, tainted: bool) -> str:
    """Manifests of nodes `kwok-1` to `kwok-<count>`.

    `tainted`: a real node stands beside them, so only pods that ask for simulated nodes (by a toleration of
    `kwok.x-k8s.io/node`) may land here.
    """
    return yaml.safe_dump_all(_node(f"kwok-{number}", tainted) for number in range(1, count + 1))


def add_simulated_nodes(site: Site, tools: Mapping[str, Path], kubectl: Kubectl, count: int) -> None:
    """Start kwok and make `count` nodes; returns when all of them are Ready."""
    with step(f"adding {count} simulated nodes", 5):
        start(components.kwok(site, tools, module_documents("kwok", "sigs.k8s.io/kwok", _STAGES)), site.run)
        kubectl.apply_text(node_manifests(count, tainted=site.has_node))
        wait_until(lambda: _ready(kubectl) >= count, f"{count} simulated nodes", 120, site.run, ("kwok",))


def _node(name: str, tainted: bool) -> dict[str, object]:
    resources = {"cpu": "1000", "memory": "4Ti", "pods": "2000"}
    taint = {"key": "kwok.x-k8s.io/node", "value": "fake", "effect": "NoSchedule"}
    labels = {
        "type": "kwok",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": labels},
        "spec": {"taints": [taint]} if tainted else {},
        "status": {"allocatable": resources, "capacity": resources},
    }


def _ready(kubectl: Kubectl) -> int:
    """Number of simulated nodes that are Ready and that the scheduler may use."""
    nodes = kubectl.json("get", "nodes", "-l", "type=kwok")["items"]
    return sum(
        any(
            condition["type"] == "Ready" and condition["status"] == "True" for condition in node["status"]["conditions"]
        )
        and not any(taint["key"].startswith("node.kubernetes.io/") for taint in node["spec"].get("taints", []))
        for node in nodes
        if "conditions" in node["status"]
    )
