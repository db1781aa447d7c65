"""`raybus dev`: the bus and all services as processes, with one log."""

import os
import signal
import time
from collections.abc import Mapping, Sequence

from rich.console import Console

from raybus.cli.place import UsageError
from raybus.dev.cluster import find
from raybus.dev.errors import DevError
from raybus.dev.paths import cluster_dir
from raybus.dev.stack import Stack
from raybus.dev.stack_log import Follower, print_new

_LOOK = 0.1
"""Seconds between two looks at the logs."""


def parse_replicas(texts: Sequence[str]) -> Mapping[str, int]:
    """`cluster-ctl=3` -> {"cluster-ctl": 3}. Raises UsageError."""
    result = {}
    for text in texts:
        service, _, number = text.partition("=")
        if not number.isdecimal() or int(number) < 1:
            raise UsageError(f'--replicas {text} is not understood: write service=number, such as "cluster-ctl=3".')
        result[service] = int(number)
    return result


def make_stack(cluster: str, replicas: Mapping[str, int], settings: Mapping[str, str]) -> Stack:
    """The services for the development cluster of that name, not started. Raises UsageError without a cluster."""
    found = find(cluster)
    if found is None:
        raise UsageError(f"The cluster {cluster} is not up: start it with `raybus cluster up --name {cluster}`.")
    # Outside the cluster, names of services do not resolve: the prober goes through the API server.
    outside = {"RAYBUS_USE_KUBERNETES_PROXY": "true"}
    inherited = {name: value for name, value in os.environ.items() if name.startswith("RAYBUS_")}
    return Stack(found, cluster_dir(cluster) / "stack", replicas, outside | inherited | dict(settings))


def run_dev(stack: Stack, console: Console) -> None:
    """Run until Ctrl-C or SIGTERM, or until a process ends by itself. Raises DevError in the last case."""
    stopping: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda got, _: stopping.append(got))
    follower = Follower(stack.folder)
    try:
        stack.start()
        console.print(f"The bus is {stack.nats_url}; logs are in {stack.folder}. Ctrl-C stops everything.")
        ready = False
        while not stopping:
            print_new(follower, console)
            if ended := stack.ended():
                raise DevError(ended[0])
            if not ready and not stack.problems():
                ready = True
                console.print("[bold green]all services are ready")
            time.sleep(_LOOK)
    finally:
        stack.stop()
        print_new(follower, console)
