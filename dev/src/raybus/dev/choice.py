"""Which kind of cluster to use, and whether this machine can run a real node (design §7)."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from enum import Enum

from raybus.dev.options import ClusterOptions


class Provider(Enum):
    """Where the cluster comes from."""

    GIVEN = "given"
    KIND = "kind"
    LOCAL = "local"


@dataclass(frozen=True)
class Machine:
    """What this machine offers. `missing`: Debian packages for a real node that are not installed."""

    root: bool
    apt: bool
    docker_works: bool
    kind_installed: bool
    missing: tuple[str, ...]
    can_make_namespaces: bool


# Program that must be there -> Debian package that brings it.
NODE_PROGRAMS = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "iptables": "iptables",
    "ip": "iproute2",
    "nsenter": "util-linux",
    "debootstrap": "debootstrap",
}


def choose(options: ClusterOptions, machine: Machine) -> Provider:
    """The first that fits: a given kubeconfig; kind where Docker works; a cluster of our own.

    kind knows neither bare clusters nor simulated nodes, so asking for these means our own.
    """
    if options.kubeconfig is not None:
        return Provider.GIVEN
    special = options.bare or options.kwok_nodes > 0
    if machine.kind_installed and machine.docker_works and not special:
        return Provider.KIND
    return Provider.LOCAL


def obstacle_to_real_node(machine: Machine) -> str | None:
    """Why a real node is impossible here, as a sentence with the way out; None when it is possible.

    Missing packages are no obstacle where root can install them with apt.
    """
    if not machine.root:
        return "a real node needs root: run this as root for one"
    if not machine.can_make_namespaces:
        return "a real node needs the right to make network namespaces (CAP_SYS_ADMIN), which root lacks here"
    if machine.missing and not machine.apt:
        return (
            f"a real node needs {', '.join(machine.missing)}: install these (the names are those of Debian's packages)"
        )
    return None


def inspect_machine() -> Machine:
    """Look at this machine."""
    missing = tuple(package for program, package in NODE_PROGRAMS.items() if shutil.which(program) is None)
    return Machine(
        root=os.geteuid() == 0,
        apt=shutil.which("apt-get") is not None,
        docker_works=_succeeds("docker", "info"),
        kind_installed=shutil.which("kind") is not None,
        missing=missing,
        can_make_namespaces=_succeeds("unshare", "--net", "true"),
    )


def _succeeds(*argv: str) -> bool:
    try:
        return subprocess.run(argv, capture_output=True, check=False, timeout=10).returncode == 0
    except (FileNotFoundError, subprocess.TimeoutExpired):
        return False
