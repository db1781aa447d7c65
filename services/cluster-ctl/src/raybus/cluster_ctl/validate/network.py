"""Rules of the network policy and of TLS (contract objects §7.2 rules 22 and 23)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from raybus.api.cel import text, texts
from raybus.api.decision import Json
from raybus.api.rules import Cel, Each, Found, NotInCel, Rule
from raybus.api.v1 import HeadGroupSpec, NetworkPolicyConfig, RayCluster
from raybus.cluster_ctl.build import tls
from raybus.cluster_ctl.build.network_policy import DEFAULT_MODE, DIRECTIONS
from raybus.cluster_ctl.validate.paths import AUTOSCALER, PART_CONTAINERS, SPEC, Part, containers, parts, where

_GROUP = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_WITHOUT = {"DenyAllEgress": "ingressRules", "DenyAllIngress": "egressRules"}
"""Mode -> rules that would be without effect in it."""
_POLICY = f"{SPEC}.?networkPolicy"
_ENTRIES = f"{_POLICY}.?workerGroups.orValue([])"


def _config(breaks: Callable[[RayCluster, NetworkPolicyConfig], Found]) -> Callable[[RayCluster], Found]:
    def check(cluster: RayCluster) -> Found:
        config = cluster.spec.network_policy
        return config is not None and breaks(cluster, config)

    return check


def _unknown_mode(_: RayCluster, config: NetworkPolicyConfig) -> Found:
    return (config.mode,) if (config.mode or DEFAULT_MODE) not in DIRECTIONS and config.mode else False


def _idle_rules(place: str, mode: str, field: str) -> Rule[RayCluster]:
    """Rules for the head or for all workers that would be without effect."""

    def breaks(_: RayCluster, config: NetworkPolicyConfig) -> Found:
        rules = config.head if place == "head" else config.worker
        if config.mode != mode or rules is None:
            return False
        return bool(rules.ingress_rules if field == "ingressRules" else rules.egress_rules)

    return Rule(
        f"networkPolicy.{place}.{field} cannot be set when mode is {mode}",
        _config(breaks),
        Cel(f"{_POLICY}.?mode.orValue('') == {text(mode)} && size({_POLICY}.?{place}.?{field}.orValue([])) > 0"),
    )


def _idle_group_rules(mode: str, field: str) -> Rule[RayCluster]:
    """The same for single groups."""

    def breaks(_: RayCluster, config: NetworkPolicyConfig) -> Found:
        if config.mode != mode:
            return False
        given = (
            (e.group_name, e.ingress_rules if field == "ingressRules" else e.egress_rules) for e in config.worker_groups
        )
        return next(((name,) for name, rules in given if rules), False)

    found = f"{_ENTRIES}.filter(e, size(e.?{field}.orValue([])) > 0)"
    return Rule(
        f"networkPolicy.workerGroups[{{}}].{field} cannot be set when mode is {mode}",
        _config(breaks),
        Cel(f"{_POLICY}.?mode.orValue('') == {text(mode)} && size({found}) > 0", (f"{found}[0].groupName",)),
    )


def _bad_group_name(cluster: RayCluster, _: NetworkPolicyConfig) -> Found:
    names = (group.group_name for group in cluster.spec.worker_group_specs)
    return next(((name,) for name in names if not re.fullmatch(_GROUP, name)), False)


def _unknown_group(cluster: RayCluster, config: NetworkPolicyConfig) -> Found:
    names = {group.group_name for group in cluster.spec.worker_group_specs}
    return next(((entry.group_name,) for entry in config.worker_groups if entry.group_name not in names), False)


_BAD_NAMES = f"variables.groups.filter(g, !g.groupName.matches({text(f'^{_GROUP}$')}))"
_UNKNOWN = f"{_ENTRIES}.filter(e, !variables.groups.exists(g, g.groupName == e.groupName))"

NETWORK: tuple[Rule[RayCluster], ...] = (
    Rule(
        f"networkPolicy.mode {{}} is not one of {', '.join(DIRECTIONS)}",
        _config(_unknown_mode),
        NotInCel("the enum of the CRD refuses it"),
    ),
    *(_idle_rules(place, mode, field) for place in ("head", "worker") for mode, field in _WITHOUT.items()),
    *(_idle_group_rules(mode, field) for mode, field in _WITHOUT.items()),
    Rule(
        "worker group name {} must be lower case letters, digits and '-' when networkPolicy is set",
        _config(_bad_group_name),
        Cel(f"{_POLICY}.hasValue() && size({_BAD_NAMES}) > 0", (f"{_BAD_NAMES}[0].groupName",)),
    ),
    Rule(
        "networkPolicy.workerGroups names an unknown group: {}",
        _config(_unknown_group),
        Cel(f"size({_UNKNOWN}) > 0", (f"{_UNKNOWN}[0].groupName",)),
    ),
)
"""Rule 22."""


class Place(NamedTuple):
    """A container that gets certificates: environment and mounts as the user wrote them."""

    name: str
    env: list[Json]
    mounts: list[Json]


def _places(cluster: RayCluster) -> Iterator[Place]:
    """Every place, none if there is no TLS."""
    if not tls.is_on(cluster):
        return
    for part in parts(cluster):
        for container in containers(part.spec.template)[:1]:
            yield Place(_name(part), container.get("env") or [], container.get("volumeMounts") or [])
    options = cluster.spec.autoscaler_options
    if options is not None:
        yield Place("the autoscaler", list(options.env), list(options.volume_mounts))


def _name(part: Part) -> str:
    return "the head" if isinstance(part.spec, HeadGroupSpec) else where(part)


def _sets_ours(place: Place) -> Found:
    return next(((entry["name"],) for entry in place.env if entry.get("name") in tls.VARIABLES), False)


def _mounts_ours(place: Place) -> bool:
    return any(mount.get("name") == tls.VOLUME or mount.get("mountPath") == tls.PATH for mount in place.mounts)


def _of_first(field: str) -> str:
    return f"dyn(size({PART_CONTAINERS}) > 0 ? {PART_CONTAINERS}[0].?{field}.orValue([]) : [])"


_OF_PARTS = (
    "variables.parts.map(part, {'name': dyn(has(part.groupName) ? 'worker group ' + part.groupName : 'the head'),"
    f" 'env': {_of_first('env')}, 'mounts': {_of_first('volumeMounts')}}})"
)
_OF_AUTOSCALER = (
    f"{{'name': dyn('the autoscaler'), 'env': dyn({AUTOSCALER}.?env.orValue([])),"
    f" 'mounts': dyn({AUTOSCALER}.?volumeMounts.orValue([]))}}"
)
_OURS = f"part.env.filter(e, e.name in {texts(tls.VARIABLES)})"

TLS = Each(
    "certificatePlaces",
    _places,
    lambda place: place.name,
    f"{SPEC}.?tlsOptions.?enabled.orValue(false) ? {_OF_PARTS} + [{_OF_AUTOSCALER}] : []",
    "part.name",
    (
        Rule(
            "cannot set {} in the environment of {where} together with tlsOptions",
            _sets_ours,
            Cel(f"size({_OURS}) > 0", (f"{_OURS}[0].name",)),
        ),
        Rule(
            f"cannot mount {tls.VOLUME} or at {tls.PATH} in {{where}} together with tlsOptions",
            _mounts_ours,
            Cel(f"part.mounts.exists(m, m.name == {text(tls.VOLUME)} || m.mountPath == {text(tls.PATH)})"),
        ),
    ),
)
"""Rule 23: variables and mounts of certificates are set here, not by the user."""
