"""Which views an object belongs to (design §3, "reverse index of routes"); pure.

An object lies in the views of all roots that may need it. Most routes follow from the object itself; a RayCluster and
its head pods and head Services also belong to whoever the cluster serves: the RayJob or RayService that owns it, and
every RayJob that names it in `status.rayClusterName` or `spec.clusterSelector` (contract rayjob §4: several jobs may
select one cluster).
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from msgspec import Struct

from raybus.api import subjects
from raybus.api.kinds import BY_KIND, ROOTS

L_CLUSTER = "ray.io/cluster"
L_NODE_TYPE = "ray.io/node-type"
L_ORIGIN_KIND = "ray.io/originated-from-crd"
L_ORIGIN_NAME = "ray.io/originated-from-cr-name"
L_CRONJOB = "ray.io/cronjob-name"

_OF_CLUSTER = (
    "Pod",
    "Service",
    "PersistentVolumeClaim",
    "ServiceAccount",
    "Role",
    "RoleBinding",
    "Ingress",
    "NetworkPolicy",
    "Issuer",
    "Certificate",
    "PodGroup.scheduler-plugins",
    "PodGroup",
    "Workload",
)
"""Kinds whose cluster label says whose they are."""

_OF_OWNER = ("Job", "Service", "PodGroup.volcano")
"""Kinds that belong to whichever root controls them."""

_CONTROLLER = {kind: controller for controller, kind in ROOTS.items()}


class Route(NamedTuple):
    """One view: the controller and its root."""

    controller: str
    namespace: str
    root: str


class Key(NamedTuple):
    """One object; `kind` as in `kinds.BY_KIND`."""

    kind: str
    namespace: str
    name: str


class Traits(Struct, frozen=True):
    """All that routing reads of one object.

    `owner`: (kind, name) of its controller owner reference; `origin`: (kind, name) that its labels say it was made
    for; `claims`: the clusters that a RayJob names in its spec and status.
    """

    key: Key
    owner: tuple[str, str] | None = None
    cluster: str = ""
    head: bool = False
    origin: tuple[str, str] | None = None
    cronjob: str = ""
    claims: tuple[str, ...] = ()


def traits(
    key: Key, labels: Mapping[str, str], owner: tuple[str, str] | None = None, claims: tuple[str, ...] = ()
) -> Traits:
    """Traits of an object with these labels."""
    made_for = labels.get(L_ORIGIN_KIND, ""), labels.get(L_ORIGIN_NAME, "")
    node_type = labels.get(L_NODE_TYPE, "")
    # A Ray pod inherits its cluster's origin; only the pods of a submitter carry one without a node type.
    of_origin = all(made_for) and not (key.kind == "Pod" and node_type)
    return Traits(
        key=key,
        owner=owner,
        cluster=labels.get(L_CLUSTER, "") if key.kind in _OF_CLUSTER else "",
        head=node_type == "head",
        origin=made_for if of_origin and key.kind in ("Pod", "Service") else None,
        cronjob=labels.get(L_CRONJOB, "") if key.kind == "RayJob" else "",
        claims=claims,
    )


def view_subject(route: Route, key: Key) -> str:
    """The subject of `key` in the view of `route`."""
    return subjects.view(*route, BY_KIND[key.kind].token, key.name)


class Index:
    """All known objects' traits and the routes that follow from them, kept up to date change by change."""

    def __init__(self) -> None:
        self._traits: dict[Key, Traits] = {}
        self._claims: dict[tuple[str, str], dict[Key, Route]] = {}
        self._members: dict[tuple[str, str], set[Key]] = {}

    def put(self, new: Traits) -> set[Key]:
        """Take in a new or changed object; returns the other objects whose routes may have changed with it."""
        old = self._traits.get(new.key)
        if old == new:
            return set()
        self._traits[new.key] = new
        if (cluster := _member_of(new)) is not None:
            self._members.setdefault(cluster, set()).add(new.key)
        if old is not None and (left := _member_of(old)) is not None and left != _member_of(new):
            self._leave(left, new.key)
        return self._reclaim(new.key, dict(_claims_of(old)), dict(_claims_of(new)))

    def drop(self, key: Key) -> set[Key]:
        """Forget an object; returns as `put`."""
        old = self._traits.pop(key, None)
        if old is None:
            return set()
        if (cluster := _member_of(old)) is not None:
            self._leave(cluster, key)
        return self._reclaim(key, dict(_claims_of(old)), {})

    def routes(self, key: Key) -> frozenset[Route]:
        """The views that `key` belongs to; none if it is not known."""
        known = self._traits.get(key)
        if known is None:
            return frozenset()
        found = set(_own_routes(known))
        if (cluster := _member_of(known)) is not None:
            found.update(self._claims.get(cluster, {}).values())
        return frozenset(found)

    def traits(self, key: Key) -> Traits | None:
        """What is known of `key`."""
        return self._traits.get(key)

    def _reclaim(
        self, key: Key, old: Mapping[tuple[str, str], Route], new: Mapping[tuple[str, str], Route]
    ) -> set[Key]:
        """Replace the claims that `key` makes on clusters."""
        affected: set[Key] = set()
        for cluster in old.keys() | new.keys():
            if old.get(cluster) == new.get(cluster):
                continue
            claims = self._claims.setdefault(cluster, {})
            claims.pop(key, None)
            if cluster in new:
                claims[key] = new[cluster]
            if not claims:
                del self._claims[cluster]
            affected |= self._members.get(cluster, set())
        return affected - {key}

    def _leave(self, cluster: tuple[str, str], key: Key) -> None:
        members = self._members[cluster]
        members.discard(key)
        if not members:
            del self._members[cluster]


def _own_routes(known: Traits) -> Iterator[Route]:
    """The routes that follow from the object alone."""
    kind, namespace, name = known.key
    if kind in _CONTROLLER:
        yield Route(_CONTROLLER[kind], namespace, name)
    if known.cluster:
        yield Route("cluster", namespace, known.cluster)
    elif known.origin is not None and known.origin[0] in _CONTROLLER:
        yield Route(_CONTROLLER[known.origin[0]], namespace, known.origin[1])
    if kind in _OF_OWNER and known.owner is not None and known.owner[0] in _CONTROLLER:
        yield Route(_CONTROLLER[known.owner[0]], namespace, known.owner[1])
    if kind == "RayJob":
        if known.owner is not None and known.owner[0] == "RayCronJob":
            yield Route("cron", namespace, known.owner[1])
        elif known.cronjob:
            yield Route("cron", namespace, known.cronjob)


def _member_of(known: Traits) -> tuple[str, str] | None:
    """(namespace, name) of the cluster whose claims `known` shares: the cluster itself, its head pods and Services."""
    if known.key.kind == "RayCluster":
        return known.key.namespace, known.key.name
    if known.head and known.cluster:
        return known.key.namespace, known.cluster
    return None


def _claims_of(known: Traits | None) -> Iterator[tuple[tuple[str, str], Route]]:
    """(cluster, route) for every cluster that `known` draws into another view."""
    if known is None:
        return
    kind, namespace, name = known.key
    if kind == "RayCluster" and known.owner is not None and known.owner[0] in ("RayJob", "RayService"):
        yield (namespace, name), Route(_CONTROLLER[known.owner[0]], namespace, known.owner[1])
    for cluster in known.claims:
        yield (namespace, cluster), Route("job", namespace, name)
