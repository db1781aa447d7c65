"""The development cluster: `up`, `down`, `status`, all by name and all idempotent (design §7)."""

import json
import shutil
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path

from raybus.dev import foreign, local
from raybus.dev.choice import Provider, choose, inspect_machine
from raybus.dev.errors import DevError
from raybus.dev.locks import exclusive
from raybus.dev.options import ClusterOptions
from raybus.dev.paths import cluster_dir, clusters_dir
from raybus.dev.process import running
from raybus.dev.site import image_store

__all__ = ["Cluster", "ClusterOptions", "down", "find", "names", "status", "up"]


@dataclass(frozen=True)
class Cluster:
    """A cluster that was brought up.

    `real_node`: it has a kubelet of its own that runs containers; otherwise nodes are simulated, foreign or absent.
    """

    name: str
    provider: Provider
    api_server_url: str
    real_node: bool
    kwok_nodes: int
    bare: bool

    @property
    def folder(self) -> Path:
        return cluster_dir(self.name)

    @property
    def kubeconfig(self) -> Path:
        """Kubeconfig of an administrator."""
        return self.kubeconfig_for("admin")

    @property
    def audit_log(self) -> Path:
        """What Raybus' users wrote, one event of the API server in each line; only in an audited cluster."""
        return self.folder / "run" / "audit.jsonl"

    def kubeconfig_for(self, user: str) -> Path:
        """Kubeconfig of `watcher`, `applier`, `prober` or `admin`. Raises `DevError` for anybody else."""
        path = self.folder / "kubeconfig" / f"{user}.yaml"
        if not path.exists():
            raise DevError(f"There is no kubeconfig for {user}: only watcher, applier and prober talk to Kubernetes.")
        return path

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the components that run here and now, by name; empty for a foreign cluster."""
        run = self.folder / "run"
        records = {path.stem: running(run, path.stem) for path in sorted(run.glob("*.json"))}
        return {name: record.pid for name, record in records.items() if record is not None}


def up(options: ClusterOptions) -> Cluster:
    """Bring the cluster up, or up to date if it runs already.

    Raises `DevError` when a prerequisite is missing or a component does not come up.
    """
    options.check()
    folder = cluster_dir(options.name)
    machine = inspect_machine()
    provider = choose(options, machine)
    with _changing(options.name):
        if provider is Provider.LOCAL:
            site = local.up(options, folder, machine)
            nodes = local.simulated_count(options, site)
            cluster = Cluster(options.name, provider, site.server, site.has_node, nodes, options.bare)
        else:
            server = foreign.up(options, folder, provider)
            cluster = Cluster(options.name, provider, server, provider is Provider.KIND, 0, False)
        (folder / "state.json").write_text(json.dumps(asdict(cluster) | {"provider": provider.value}))
    return cluster


def down(name: str) -> bool:
    """End everything that `up` started for cluster `name` and forget it; tells whether there was one.

    Only the images of a real node stay, so that they need not be loaded again. A given cluster is left as it is.
    """
    folder = cluster_dir(name)
    if not folder.exists():
        return False
    with _changing(name):
        cluster = find(name)
        if cluster is not None and cluster.provider is not Provider.LOCAL:
            foreign.down(name, cluster.provider)
        else:
            local.down(name, folder)
        _forget(folder)
    return cluster is not None


def find(name: str) -> Cluster | None:
    """The cluster of that name as it was last brought up, without looking whether it still runs."""
    try:
        state = json.loads((cluster_dir(name) / "state.json").read_text())
    except FileNotFoundError:
        return None
    return Cluster(**(state | {"provider": Provider(state["provider"])}))


def names() -> list[str]:
    """Names of all clusters that were brought up and not taken down."""
    return sorted(path.parent.name for path in clusters_dir().glob("*/state.json"))


def status(name: str) -> dict[str, int | None]:
    """Components of cluster `name` with their pid, None for one that has ended by itself; empty when it is down."""
    run = cluster_dir(name) / "run"
    records = {path.stem: running(run, path.stem) for path in sorted(run.glob("*.json"))}
    return {component: record.pid if record else None for component, record in records.items()}


def _changing(name: str) -> AbstractContextManager[None]:
    """One `up` or `down` of a cluster at a time. The lock lies outside the folder, which `down` removes."""
    return exclusive(clusters_dir() / "locks" / name, f"changing the cluster {name}")


def _forget(folder: Path) -> None:
    kept = image_store(folder)
    for path in folder.iterdir():
        if path.is_dir() and path != kept:
            shutil.rmtree(path)
        elif path != kept:
            path.unlink()
    if not kept.exists():
        folder.rmdir()
