"""The `raybus` command."""

import sys

from cyclopts import App
from rich.console import Console

from raybus.bus.port import BusError
from raybus.cli.commands import dev, explain_object, settings, show_timeline
from raybus.cli.demo import demo
from raybus.cli.place import UsageError
from raybus.dev.commands import cluster_down, cluster_kubeconfig, cluster_status, cluster_up
from raybus.dev.errors import DevError
from raybus.runtime.settings import SettingsError


def build() -> App:
    """The command line: every command is a plain function."""
    app = App(name="raybus", help="Ray on Kubernetes: development cluster, services, and what they did and why.")
    cluster = App(name="cluster", help="The development cluster.")
    cluster.command(cluster_up, name="up")
    cluster.command(cluster_down, name="down")
    cluster.command(cluster_status, name="status")
    cluster.command(cluster_kubeconfig, name="kubeconfig")
    app.command(cluster)
    app.command(dev)
    app.command(demo)
    app.command(show_timeline, name="timeline")
    app.command(explain_object, name="explain")
    app.command(settings)
    return app


def main() -> None:
    """Entry point: an error is one sentence on standard error and exit status 1."""
    try:
        build()()
    except (DevError, UsageError, SettingsError, BusError) as error:
        Console(stderr=True, highlight=False).print(f"raybus: {error}", markup=False, soft_wrap=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
