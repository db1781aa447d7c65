"""A real node: Debian's containerd, a kubelet, kube-proxy and cluster DNS, in a network of its own (ADR 0012)."""

import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from raybus.dev import node_config
from raybus.dev.cgroups import make_group, remove_group
from raybus.dev.errors import DevError
from raybus.dev.images.library import load_images
from raybus.dev.kubectl import Kubectl
from raybus.dev.network import inside, remove_network
from raybus.dev.process import running, start
from raybus.dev.progress import say, step
from raybus.dev.shell import run, succeeds
from raybus.dev.site import NODE_NAME, Site
from raybus.dev.waiting import wait_until

_CNI_RESULTS = Path("/var/lib/cni/results")
_LOG_LINKS = Path("/var/log/containers")


def install_packages(missing: Sequence[str]) -> None:
    """Install Debian packages that a real node needs. Raises `DevError` when apt cannot."""
    if not missing:
        return
    with step(f"installing Debian packages that a real node needs: {', '.join(missing)}", 20):
        install = ("install", "-y", "--no-install-recommends", *missing)
        # The second attempt with fresh lists: a new machine has none, and an old one asks for versions that are gone.
        if _apt(*install) is not None and (trouble := _apt("update") or _apt(*install)):
            raise DevError(
                f"apt could not install {', '.join(missing)}: {trouble}. Install them yourself and try again."
            )


def _apt(*arguments: str) -> str | None:
    """What apt-get complained about; None when it did what it should."""
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    done = subprocess.run(["apt-get", "-q", *arguments], env=environment, capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else done.stderr.strip()[-300:] or f"exit status {done.returncode}"


def add_real_node(site: Site, tools: Mapping[str, Path], kubectl: Kubectl) -> None:
    """Start the node's components, load the images, and return when the node is Ready and DNS answers."""
    for path, text in node_config.files(site).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    node_config.state_folder(site).mkdir(parents=True, exist_ok=True)
    make_group(node_config.group(site))
    with step("starting containerd"):
        containerd = shutil.which("containerd")
        assert containerd is not None, "install_packages has brought it"
        start(inside(site, node_config.containerd(site, containerd)), site.run)
        wait_until(lambda: succeeds(*_ctr(site), "version"), "containerd", 30, site.run, ("containerd",))
    load_images(_ctr(site), tools["pause"])
    with step("starting kubelet, kube-proxy and cluster DNS", 12):
        start(inside(site, node_config.kubelet(site, tools)), site.run)
        start(inside(site, node_config.kube_proxy(site, tools)), site.run)
        start(inside(site, node_config.coredns(site, tools)), site.run)
        wait_until(lambda: _is_ready(kubectl), "the node", 120, site.run, ("containerd", "kubelet"))
        wait_until(lambda: _answers(site.layout.networks.bridge), "cluster DNS", 30, site.run, ("coredns",))


def end_containers(site: Site) -> None:
    """End all containers while containerd still runs, so that it forgets them and lets go of their mounts."""
    if running(site.run, "containerd") is None:
        return
    if tasks := run(*_ctr(site), "tasks", "ls", "-q").split():
        for task in tasks:
            succeeds(*_ctr(site), "tasks", "kill", "--all", "--signal", "SIGKILL", task)
        succeeds(*_ctr(site), "tasks", "rm", "--force", *tasks)
    if containers := run(*_ctr(site), "containers", "ls", "-q").split():
        succeeds(*_ctr(site), "containers", "rm", *containers)
    for container in containers:
        _remove_results(f"*-{container}-*")


def clean_up(site: Site) -> None:
    """Remove what the stopped node has left: processes of pods, mounts, control groups, network, files."""
    for pid in _shims(node_config.socket(site)):
        os.kill(pid, signal.SIGKILL)
    remove_group(node_config.group(site))
    folders = (node_config.node_folder(site), node_config.state_folder(site))
    for mount in mounts_below(Path("/proc/self/mounts").read_text(), folders):
        run("umount", "--lazy", mount)
    remove_network(site)
    _remove_results(f"raybus-{site.name}-*")
    for link in _LOG_LINKS.glob("*"):
        if link.is_symlink() and link.readlink().is_relative_to(node_config.node_folder(site)):
            link.unlink()
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
    if node_config.state_folder(site).exists() or node_config.node_folder(site).exists():
        say(f"Some files of the node could not be removed: {', '.join(map(str, folders))}.")


def mounts_below(mounts: str, folders: Sequence[Path]) -> list[str]:
    """Mount points below `folders` out of the text of `/proc/self/mounts`, the innermost first."""
    points = [line.split()[1] for line in mounts.splitlines()]
    below = [point for point in points if any(Path(point).is_relative_to(folder) for folder in folders)]
    return sorted(below, key=len, reverse=True)


def _remove_results(pattern: str) -> None:
    """Forget what the network plugins noted: its place is fixed, and nobody tells them that our containers ended."""
    for result in _CNI_RESULTS.glob(pattern):
        result.unlink()


def _shims(address: Path) -> list[int]:
    """Processes that containerd left to watch over containers: known by the socket of our containerd."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            argv = path.read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if b"containerd-shim" in argv[0] and str(address).encode() in argv:
            found.append(int(path.parent.name))
    return found


def _ctr(site: Site) -> tuple[str, ...]:
    return ("ctr", f"--address={node_config.socket(site)}", "--namespace=k8s.io")


def _is_ready(kubectl: Kubectl) -> bool:
    nodes = kubectl.json("get", "nodes", "--field-selector", f"metadata.name={NODE_NAME}")["items"]
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for node in nodes
        for condition in node["status"].get("conditions", [])
    ) and not any(taint["key"] == "node.kubernetes.io/not-ready" for taint in nodes[0]["spec"].get("taints", []))


def _answers(address: str) -> bool:
    try:
        socket.create_connection((address, 53), timeout=1).close()
    except OSError:
        return False
    return True
