"""The chains: the first check that objects gives the message, as KubeRay does (contract objects §7.2)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from raybus.api.v1 import RayCluster
from raybus.cluster_ctl.build.ownership import creator
from raybus.cluster_ctl.build.ports import head_ports
from raybus.cluster_ctl.labels import MAX_CLUSTER_NAME
from raybus.cluster_ctl.remembered import remembered
from raybus.cluster_ctl.validate import groups, options, storage
from raybus.cluster_ctl.validate.gates import closed_gate
from raybus.cluster_ctl.validate.history import history_server
from raybus.cluster_ctl.validate.network import network_policy, tls_is_ours

Check = Callable[[RayCluster], str | None]

_DNS_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_UPGRADES = (None, "", "None", "Recreate")


def _name_length(cluster: RayCluster) -> str | None:
    if len(cluster.metadata.name) > MAX_CLUSTER_NAME:
        return f"RayCluster name should be no more than {MAX_CLUSTER_NAME} characters"
    return None


def _name_form(cluster: RayCluster) -> str | None:
    if _DNS_1035.fullmatch(cluster.metadata.name):
        return None
    return "RayCluster name should be lower case letters, digits and '-', start with a letter and not end with '-'"


def _upgrade_type(cluster: RayCluster) -> str | None:
    strategy = cluster.spec.upgrade_strategy
    if strategy is not None and strategy.type not in _UPGRADES:
        return f"upgradeStrategy.type {strategy.type} is invalid, valid options are Recreate or None"
    return None


def _upgrade_origin(cluster: RayCluster) -> str | None:
    strategy, kind = cluster.spec.upgrade_strategy, creator(cluster)
    if strategy is not None and strategy.type and kind != "RayCluster":
        return f"upgradeStrategy cannot be set when the RayCluster is created by a {kind}"
    return None


def _service_ports(cluster: RayCluster) -> str | None:
    """All of Ray's ports are added to the user's head Service: the API server accepts no name twice (ADR 0111)."""
    given = (cluster.spec.head_group_spec.head_service or {}).get("spec") or {}
    names = {port.get("name") for port in given.get("ports") or ()}
    twice = sorted(names & head_ports(cluster).keys())
    return f"headService repeats the names of ports that are added: {', '.join(twice)}" if twice else None


METADATA: tuple[Check, ...] = (_name_length, _name_form)

SPEC: tuple[Check, ...] = (
    groups.head_has_containers,
    groups.head_resources_once,
    groups.head_labels,
    groups.worker_groups,
    options.ft_annotation_or_options,
    options.redis_address_needs_ft,
    options.redis_credentials_once,
    storage.rocksdb_without_redis,
    storage.claim_or_its_settings,
    storage.rocksdb_reserved,
    storage.storage_needs_rocksdb,
    options.redis_username_by_options,
    options.autoscaler_env_needs_autoscaling,
    options.autoscaler_without_suspended_groups,
    options.autoscaler_version_once,
    options.autoscaler_v2_restart_policy,
    options.autoscaler_idle_timeout,
    options.autoscaler_reserved_env,
    history_server,
    options.auth_versions,
    network_policy,
    tls_is_ours,
    groups.distinct_names,
    _service_ports,
    _upgrade_type,
    _upgrade_origin,
)


@remembered
def invalid_metadata(cluster: RayCluster) -> str | None:
    """What is wrong with the name, None if nothing."""
    return _first(METADATA, cluster)


@remembered
def invalid_spec(cluster: RayCluster, gates: frozenset[str]) -> str | None:
    """What is wrong with the spec, None if nothing; `gates`: the feature gates that are open."""
    return closed_gate(cluster, gates) or _first(SPEC, cluster)


def _first(checks: Iterable[Check], cluster: RayCluster) -> str | None:
    return next((problem for check in checks if (problem := check(cluster)) is not None), None)
