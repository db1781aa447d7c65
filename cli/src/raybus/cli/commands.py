"""The commands of `raybus` that are not the cluster's: their parameters become flags."""

import asyncio
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from raybus.cli.dev_command import make_stack, parse_replicas, run_dev
from raybus.cli.explain import about, explain, reasons
from raybus.cli.history import read_timelines
from raybus.cli.place import Target, UsageError, parse_target
from raybus.cli.settings_command import CLASSES, rows
from raybus.cli.timeline import render
from raybus.runtime.settings import environment

out = Console(highlight=False)

Namespace = Annotated[str, Parameter(name=["--namespace", "-n"])]


def dev(*, cluster: str = "dev", replicas: tuple[str, ...] = (), submitter: str | None = None) -> None:
    """Start the bus and all services as processes of this machine, with one log.

    Settings are taken from RAYBUS_* variables, as in production (see `raybus settings`).

    Parameters
    ----------
    cluster: The development cluster to work on (`raybus cluster up`).
    replicas: More than one process of a service: "cluster-ctl=3".
    submitter: "raybus" (its own image, the default) or "ray" (`ray job submit` in the head's image).
    """
    settings = {"RAYBUS_SUBMITTER": submitter} if submitter else {}
    run_dev(make_stack(cluster, parse_replicas(replicas), settings), out)


def show_timeline(target: str, *, namespace: Namespace = "default", cluster: str = "dev") -> None:
    """Print what happened to an object and why, also after it is gone.

    Parameters
    ----------
    target: The object: "rayjob/name", "raycluster/name".
    namespace: Its namespace.
    cluster: The development cluster whose bus is read, unless RAYBUS_NATS_URL is set.
    """
    wanted = parse_target(target, namespace)
    (entries,) = asyncio.run(read_timelines(cluster, [wanted]))
    if not entries:
        raise UsageError(f"Nothing is recorded about {wanted} in namespace {namespace}.")
    for entry in entries:
        out.print(render(entry), soft_wrap=True)


def explain_object(target: str, *, namespace: Namespace = "default", cluster: str = "dev") -> None:
    """Say why an object is where it is and what it waits for.

    Parameters
    ----------
    target: The object: "rayjob/name", "raycluster/name".
    namespace: Its namespace.
    cluster: The development cluster whose bus is read, unless RAYBUS_NATS_URL is set.
    """
    for line in asyncio.run(explanation(cluster, parse_target(target, namespace))):
        out.print(line, markup=False, soft_wrap=True)


async def explanation(cluster: str, target: Target) -> list[str]:
    """The lines of `raybus explain`; reads the timelines of `target` and of what its reasons point to."""
    known = {target: (await read_timelines(cluster, [target]))[0]}
    ahead = [target]
    while ahead:
        others = [about(why, at) for at in ahead for why in reasons(known[at])]
        ahead = [other for other in others if other is not None and other not in known]
        known |= dict(zip(ahead, await read_timelines(cluster, ahead), strict=True)) if ahead else {}
    return list(explain(target, lambda wanted: known.get(wanted, [])))


def settings(
    service: str = "",
    *arguments: Annotated[str, Parameter(allow_leading_hyphen=True)],
) -> None:
    """Print every setting with its value, its source and its default.

    Parameters
    ----------
    service: One service; all of them when left out.
    arguments: Flags as the service would get them, to see what they change.
    """
    for name in [service] if service else CLASSES:
        table = Table("setting", "value", "source", "default", "meaning", title=name, title_justify="left", box=None)
        for row in rows(name, arguments, environment()):
            table.add_row(*row)
        out.print(table)
