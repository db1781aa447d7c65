"""`raybus cluster …`: plain functions that the command line calls (`cli/` turns their parameters into flags)."""

import sys
from collections.abc import Callable
from pathlib import Path

from rich.table import Table

from raybus.dev import cluster as clusters
from raybus.dev.cluster import Cluster, ClusterOptions
from raybus.dev.errors import DevError
from raybus.dev.options import parse_nodes
from raybus.dev.paths import cluster_dir
from raybus.dev.progress import console, say


def cluster_up(
    *, name: str = "dev", kubeconfig: Path | None = None, bare: bool = False, nodes: tuple[str, ...] = ()
) -> None:
    """Bring up the development cluster, or bring it up to date.

    Parameters
    ----------
    name
        Name of the cluster; several can stand side by side.
    kubeconfig
        Use this existing cluster instead of one of our own.
    bare
        No nodes, no scheduler: only what the recorded cases need.
    nodes
        "real" (the default), or "kwok:20" for 20 simulated nodes; may be given twice.
    """

    def bring_up() -> None:
        count, real = parse_nodes(nodes)
        cluster = clusters.up(ClusterOptions(name, bare, count, real, kubeconfig))
        say(describe(cluster))

    _or_exit(bring_up)


def cluster_down(*, name: str = "dev") -> None:
    """End the development cluster; nothing of it keeps running.

    Parameters
    ----------
    name
        Name of the cluster.
    """
    _or_exit(lambda: say(f"{name} is down." if clusters.down(name) else f"{name} was not up."))


def cluster_status(*, name: str | None = None) -> None:
    """Show what runs of one cluster, or of all.

    Parameters
    ----------
    name
        Name of the cluster; all clusters when left out.
    """

    def show() -> None:
        if not (chosen := clusters.names() if name is None else [name]):
            say("No cluster is up: start one with `raybus cluster up`.")
        for each in chosen:
            _show(each)

    _or_exit(show)


def cluster_kubeconfig(*, name: str = "dev", user: str = "admin") -> None:
    """Print the path of a kubeconfig.

    Parameters
    ----------
    name
        Name of the cluster.
    user
        "admin", or one of the services that talk to Kubernetes: "watcher", "applier", "prober".
    """

    def show() -> None:
        sys.stdout.write(f"{_existing(name).kubeconfig_for(user)}\n")

    _or_exit(show)


def describe(cluster: Cluster) -> str:
    """One sentence about a cluster and how to talk to it."""
    if cluster.bare:
        nodes = "bare, without nodes"
    elif cluster.real_node and cluster.kwok_nodes:
        nodes = f"a real node and {cluster.kwok_nodes} simulated ones"
    elif cluster.real_node:
        nodes = "a real node"
    else:
        nodes = f"{cluster.kwok_nodes} simulated nodes" if cluster.kwok_nodes else "its own nodes"
    return f"{cluster.name} is up at {cluster.api_server_url} ({nodes}). KUBECONFIG={cluster.kubeconfig}"


def _show(name: str) -> None:
    say(describe(_existing(name)))
    components = clusters.status(name)
    table = Table("component", "pid", "log", box=None)
    for component, pid in components.items():
        state = str(pid) if pid is not None else "ended"
        table.add_row(component, state, str(cluster_dir(name) / "run" / f"{component}.log"))
    console.print(table)
    if ended := [component for component, pid in components.items() if pid is None]:
        raise DevError(f"{', '.join(ended)} ended by itself: see the log, then `raybus cluster up --name {name}`.")


def _existing(name: str) -> Cluster:
    if (cluster := clusters.find(name)) is None:
        raise DevError(f"The cluster {name} is not up: start it with `raybus cluster up --name {name}`.")
    return cluster


def _or_exit(action: Callable[[], None]) -> None:
    """Run `action`; an error is one sentence on stderr and exit status 1."""
    try:
        action()
    except DevError as error:
        say(f"error: {error}")
        raise SystemExit(1) from None
