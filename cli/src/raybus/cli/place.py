"""What the user means by `rayjob/x`, and where the bus is that knows about it."""

import json
import os
from dataclasses import dataclass

from raybus.api.kinds import BY_TOKEN
from raybus.bus import BusSettings
from raybus.dev.cluster import find
from raybus.dev.paths import cluster_dir
from raybus.dev.stack import READER, state_file

ROOT_TOKENS = ("rayjob", "raycluster", "rayservice", "raycronjob")


class UsageError(Exception):
    """What the user has to change, in one sentence."""


@dataclass(frozen=True)
class Target:
    """A custom resource by kind token, namespace and name."""

    token: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.token}/{self.name}"


def parse_target(text: str, namespace: str) -> Target:
    """`rayjob/x`, also `rayjobs/x` and `RayJob/x`. Raises UsageError."""
    kind, slash, name = text.partition("/")
    token = kind.lower().removesuffix("s")
    if not slash or not name or token not in ROOT_TOKENS:
        raise UsageError(f'"{text}" names no object: write kind/name, where kind is one of {", ".join(ROOT_TOKENS)}.')
    return Target(BY_TOKEN[token].token, namespace, name)


def bus_settings(cluster: str) -> BusSettings:
    """The bus of RAYBUS_NATS_URL, else that of `raybus dev` on the development cluster of that name.

    Raises UsageError when neither is there.
    """
    if url := os.environ.get("RAYBUS_NATS_URL"):
        user = os.environ.get("RAYBUS_NATS_USER", READER)
        return BusSettings(
            url=url, user=user, password=os.environ.get("RAYBUS_NATS_PASSWORD", ""), name="raybus command"
        )
    state = state_file(cluster_dir(cluster) / "stack")
    if not state.exists():
        hint = f"`raybus dev --cluster {cluster}`" if find(cluster) else "`raybus cluster up` and `raybus dev`"
        raise UsageError(f"No bus is known: start {hint}, or set RAYBUS_NATS_URL and RAYBUS_NATS_PASSWORD.")
    known = json.loads(state.read_text())
    return BusSettings(url=known["nats_url"], user=READER, password=known["password"], name="raybus command")
