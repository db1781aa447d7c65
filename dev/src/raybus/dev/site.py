"""Where one local cluster has its files and addresses."""

from dataclasses import dataclass
from pathlib import Path

from raybus.dev.layout import Layout

CLUSTER_DOMAIN = "cluster.local"
NODE_NAME = "raybus"


@dataclass(frozen=True)
class Site:
    """Folder and layout of a local cluster.

    `has_node`: it has a real node, whose pods must reach the API server; without one everything stays on loopback.
    """

    name: str
    folder: Path
    layout: Layout
    has_node: bool

    @property
    def run(self) -> Path:
        """Records and logs of the components."""
        return self.folder / "run"

    @property
    def pki(self) -> Path:
        return self.folder / "pki"

    @property
    def audit_log(self) -> Path:
        return self.run / "audit.jsonl"

    @property
    def audit_policy(self) -> Path:
        return self.folder / "audit.yaml"

    @property
    def address(self) -> str:
        """Where the API server listens: never an address that other machines can reach."""
        return self.layout.networks.host if self.has_node else "127.0.0.1"

    @property
    def server(self) -> str:
        return f"https://{self.address}:{self.layout.ports['apiserver']}"

    def kubeconfig(self, user: str) -> Path:
        return self.folder / "kubeconfig" / f"{user}.yaml"


def image_store(folder: Path) -> Path:
    """Where a real node of the cluster in `folder` has its images; they survive `down`."""
    return folder / "containerd"
