"""What is remembered of a simulated run for its invariants: violations, and what users have wanted when."""

from collections.abc import Callable
from typing import NamedTuple

from raybus.api.decision import Json
from raybus.testkit.api_store import Change, Store

WINDOW = 60.0
"""Seconds for which a decision may still follow what a user wanted before: longer than any freeze."""


class Violation(NamedTuple):
    """`at`: true seconds since the start."""

    at: float
    rule: str
    text: str

    def __str__(self) -> str:
        return f"{self.at:8.3f} s  {self.rule}: {self.text}"


class Wish(NamedTuple):
    """What a RayCluster's spec said from `at` on: pods per group, and names in `workersToDelete`."""

    at: float
    pods: dict[str, int]
    named: frozenset[str]


class Ledger:
    """`time`: true seconds. `wiped_at`: when the bus last lost its store. `published`: when VIEW has first
    shown an object, by UID."""

    def __init__(self, store: Store, time: Callable[[], float]) -> None:
        self.store, self.time = store, time
        self.violations: list[Violation] = []
        self.wiped_at = float("-inf")
        self.published: dict[str, float] = {}
        self._wishes: dict[str, list[Wish]] = {}
        store.observers.append(self._see)

    def violate(self, rule: str, text: str) -> None:
        """Write a violation down."""
        self.violations.append(Violation(self.time(), rule, text))

    def wishes(self, cluster_uid: str) -> list[Wish]:
        """What was wanted of a RayCluster within the last WINDOW seconds, oldest first."""
        since = self.time() - WINDOW
        found = self._wishes.get(cluster_uid, [])
        first = max((i for i, wish in enumerate(found) if wish.at <= since), default=0)
        return found[first:]

    def _see(self, change: Change) -> None:
        if change.kind != "RayCluster" or change.after is None:
            return
        if change.before is None or change.before.get("spec") != change.after.get("spec"):
            uid = change.after["metadata"]["uid"]
            self._wishes.setdefault(uid, []).append(_wish(self.time(), change.after["spec"]))


def _wish(at: float, spec: Json) -> Wish:
    groups = spec.get("workerGroupSpecs") or ()
    named = {name for group in groups for name in (group.get("scaleStrategy") or {}).get("workersToDelete") or ()}
    return Wish(at, {group["groupName"]: desired(group) for group in groups}, frozenset(named))


def desired(group: Json) -> int:
    """Pods that a worker group should have (contract reconcile §11.1)."""
    least, most = int(group.get("minReplicas", 0)), int(group.get("maxReplicas", 2**31 - 1))
    replicas = int(group.get("replicas", least))
    return 0 if group.get("suspend") else min(max(replicas, least), most) * int(group.get("numOfHosts", 1))


def owner(obj: Json) -> Json | None:
    """The controlling owner reference."""
    return next((o for o in obj["metadata"].get("ownerReferences") or () if o.get("controller")), None)


def by_us(store: Store) -> bool:
    """Whether the present write is an applier's."""
    return store.writer.startswith("applier")
