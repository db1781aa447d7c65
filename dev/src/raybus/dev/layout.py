"""What a cluster is given once and keeps: its ports and its private networks.

Clusters stand side by side on one machine, so each has its own. Both live in `cluster.json` of the cluster's folder.
"""

import ipaddress
import json
import socket
import subprocess
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from raybus.dev.errors import DevError
from raybus.dev.locks import exclusive
from raybus.dev.paths import clusters_dir

# A real node has a network namespace of its own, so its components keep their usual ports.
PORT_NAMES = ("etcd-client", "etcd-peer", "apiserver")
# Below the ports that the kernel hands out for connections (from 32768) and below Kubernetes' node ports (from 30000).
_PORTS = range(21000, 29900)
_NETWORKS = range(32)


@dataclass(frozen=True)
class Networks:
    """IPv4 networks of cluster number `index`: pods, Services, and the link between host and node."""

    index: int

    @property
    def pods(self) -> str:
        return f"10.{64 + self.index}.0.0/16"

    @property
    def bridge(self) -> str:
        """Address of the node's bridge, where cluster DNS listens."""
        return f"10.{64 + self.index}.0.1"

    @property
    def services(self) -> str:
        return f"10.{96 + self.index}.0.0/16"

    @property
    def api_service(self) -> str:
        """Address of the Service `kubernetes`: always the first of the range."""
        return f"10.{96 + self.index}.0.1"

    @property
    def host(self) -> str:
        return f"10.{128 + self.index}.0.1"

    @property
    def node(self) -> str:
        return f"10.{128 + self.index}.0.2"

    @property
    def link(self) -> str:
        return f"10.{128 + self.index}.0.0/30"

    def all(self) -> list[ipaddress.IPv4Network]:
        return [ipaddress.IPv4Network(network) for network in (self.pods, self.services, self.link)]


@dataclass(frozen=True)
class Layout:
    """Ports by the names of `PORT_NAMES`, and the number that the networks follow from."""

    ports: dict[str, int]
    network_index: int

    @property
    def networks(self) -> Networks:
        return Networks(self.network_index)


def allocate_ports(names: Iterable[str], taken: frozenset[int], is_free: Callable[[int], bool]) -> dict[str, int]:
    """The lowest ports that no other cluster was given and that nothing listens on.

    Raises `DevError` when the range is used up.
    """
    candidates: Iterator[int] = (port for port in _PORTS if port not in taken and is_free(port))
    ports = dict(zip(names, candidates, strict=False))
    if len(ports) < len(tuple(names)):
        raise DevError(f"No free ports between {_PORTS[0]} and {_PORTS[-1]} on this machine: end some clusters first.")
    return ports


def allocate_network(taken: frozenset[int], routes: Iterable[ipaddress.IPv4Network]) -> int:
    """The lowest network number that no other cluster has and that overlaps no route of this machine.

    Raises `DevError` when there is none.
    """
    used = list(routes)
    for index in _NETWORKS:
        if index not in taken and not any(own.overlaps(route) for own in Networks(index).all() for route in used):
            return index
    raise DevError("All private networks 10.64 to 10.159 are in use on this machine: end some clusters first.")


def ensure_layout(folder: Path, idle: bool) -> Layout:
    """The layout of the cluster in `folder`, made at its first start.

    `idle`: nothing of the cluster runs; a port that somebody else has taken meanwhile is then replaced.
    """
    path = folder / "cluster.json"
    with exclusive(clusters_dir() / "layout.lock", "choosing ports"):
        others = [_read(other) for other in clusters_dir().glob("*/cluster.json") if other != path]
        if path.exists():
            layout = _read(path)
            if not idle or all(map(_is_free, layout.ports.values())):
                return layout
            index = layout.network_index
        else:
            index = allocate_network(frozenset(other.network_index for other in others), _routes())
        taken = frozenset(port for other in others for port in other.ports.values())
        layout = Layout(allocate_ports(PORT_NAMES, taken, _is_free), index)
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(asdict(layout)))
        return layout


def _read(path: Path) -> Layout:
    return Layout(**json.loads(path.read_text()))


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _routes() -> list[ipaddress.IPv4Network]:
    """Destinations of this machine's routes; none without an `ip` command (then there is no real node either)."""
    try:
        text = subprocess.run(["ip", "-4", "-json", "route"], capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return []
    return [ipaddress.IPv4Network(route["dst"]) for route in json.loads(text) if route["dst"] != "default"]
