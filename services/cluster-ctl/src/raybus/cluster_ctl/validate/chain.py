"""The chains: the first rule that is broken gives the message, as KubeRay does (contract objects §7.2)."""

from __future__ import annotations

import re

from raybus.api.cel import text, texts
from raybus.api.rules import Cel, Chain, Found, NotInCel, Policy, Rule, first_problem
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl.build.ownership import creator
from raybus.cluster_ctl.build.ports import DEFAULT_PORTS, head_ports
from raybus.cluster_ctl.labels import MAX_CLUSTER_NAME, ORIGIN_KIND
from raybus.cluster_ctl.remembered import remembered
from raybus.cluster_ctl.validate.gates import closed_gate
from raybus.cluster_ctl.validate.groups import DISTINCT_NAMES, GROUPS
from raybus.cluster_ctl.validate.history import HISTORY
from raybus.cluster_ctl.validate.history import VARIABLES as COLLECTOR
from raybus.cluster_ctl.validate.network import NETWORK, TLS
from raybus.cluster_ctl.validate.options import AUTH, AUTOSCALING, BEFORE_STORAGE, REDIS_USER
from raybus.cluster_ctl.validate.paths import SPEC, VARIABLES
from raybus.cluster_ctl.validate.storage import STORAGE

_DNS_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_UPGRADES = (None, "", "None", "Recreate")


def _unknown_upgrade(cluster: RayCluster) -> Found:
    strategy = cluster.spec.upgrade_strategy
    return (str(strategy.type),) if strategy is not None and strategy.type not in _UPGRADES else False


def _upgrade_by_creator(cluster: RayCluster) -> Found:
    strategy, kind = cluster.spec.upgrade_strategy, creator(cluster)
    return (kind,) if strategy is not None and strategy.type and kind != "RayCluster" else False


def _ports_twice(cluster: RayCluster) -> Found:
    given = (cluster.spec.head_group_spec.head_service or {}).get("spec") or {}
    added = head_ports(cluster)
    twice = [port["name"] for port in given.get("ports") or () if port.get("name") in added]
    return (", ".join(twice),) if twice else False


_DECLARED = (
    "variables.headContainers[0].?ports.orValue([])"
    ".map(p, p.?name.orValue('') != '' ? p.name : string(p.containerPort) + '-port')"
)
_ADDED = (
    "size(variables.headContainers) == 0 ? []"
    f" : size(variables.headContainers[0].?ports.orValue([])) == 0 ? {texts(DEFAULT_PORTS)} : ['metrics'] + {_DECLARED}"
)
_TWICE = (
    f"{SPEC}.?headGroupSpec.?headService.?spec.?ports.orValue([]).map(p, p.?name.orValue(''))"
    ".filter(name, name in variables.headPorts)"
)
_ORIGIN = f"object.metadata.?labels[?{text(ORIGIN_KIND)}].orValue('')"

METADATA: Chain[RayCluster] = (
    Rule(
        f"RayCluster name should be no more than {MAX_CLUSTER_NAME} characters",
        lambda cluster: len(cluster.metadata.name) > MAX_CLUSTER_NAME,
        Cel(f"size(object.metadata.name) > {MAX_CLUSTER_NAME}"),
    ),
    Rule(
        "RayCluster name should be lower case letters, digits and '-', start with a letter and not end with '-'",
        lambda cluster: not re.fullmatch(_DNS_1035, cluster.metadata.name),
        Cel(f"!object.metadata.name.matches({text(f'^{_DNS_1035}$')})"),
    ),
)

SPEC_RULES: Chain[RayCluster] = (
    GROUPS,
    *BEFORE_STORAGE,
    *STORAGE,
    REDIS_USER,
    *AUTOSCALING,
    *HISTORY,
    *AUTH,
    *NETWORK,
    TLS,
    DISTINCT_NAMES,
    # All of Ray's ports are added to the user's head Service: the API server accepts no name twice (ADR 0111).
    Rule(
        "headService repeats the names of ports that are added: {}",
        _ports_twice,
        Cel(f"size({_TWICE}) > 0", (f"{_TWICE}.join(', ')",)),
    ),
    Rule(
        "upgradeStrategy.type {} is invalid, valid options are Recreate or None",
        _unknown_upgrade,
        NotInCel("the enum of the CRD refuses it"),
    ),
    Rule(
        "upgradeStrategy cannot be set when the RayCluster is created by a {}",
        _upgrade_by_creator,
        Cel(
            f"{SPEC}.?upgradeStrategy.?type.orValue('') != '' && {_ORIGIN} in ['RayJob', 'RayService']",
            (_ORIGIN,),
        ),
    ),
)

POLICY = Policy("RayCluster", "rayclusters", VARIABLES | COLLECTOR | {"headPorts": _ADDED}, (*METADATA, *SPEC_RULES))
"""What the API server may refuse by itself."""


@remembered
def invalid_metadata(cluster: RayCluster) -> str | None:
    """What is wrong with the name, None if nothing."""
    return first_problem(METADATA, cluster)


@remembered
def invalid_spec(cluster: RayCluster, gates: frozenset[str]) -> str | None:
    """What is wrong with the spec, None if nothing; `gates`: the feature gates that are open."""
    return closed_gate(cluster, gates) or first_problem(SPEC_RULES, cluster)
