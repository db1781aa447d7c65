"""Network policies: one for the head, one for each worker group (contract objects §5.4)."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from raybus.api.decision import Json
from raybus.api.v1 import NetworkPolicyConfig, NetworkPolicyRules, RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build.ownership import child_metadata
from raybus.cluster_ctl.build.start_params import DASHBOARD_PORT, port

GATE = "RayClusterNetworkPolicy"
DEFAULT_MODE = "DenyAll"
DIRECTIONS = {"DenyAll": ("Ingress", "Egress"), "DenyAllIngress": ("Ingress",), "DenyAllEgress": ("Egress",)}
_BY_SUBMITTER = "K8sJobMode"


class _Rules(NamedTuple):
    ingress: Sequence[Json] = ()
    egress: Sequence[Json] = ()


def network_policies(cluster: RayCluster, config: NetworkPolicyConfig) -> Iterator[Json]:
    """All policies that the cluster is to have."""
    name = cluster.metadata.name
    selector = {labels.NODE_TYPE: labels.HEAD}
    custom = _rules(config.head)
    submitter = tuple(_submitter_rules(cluster))
    yield _policy(
        cluster,
        config,
        f"{name}-head",
        labels.HEAD_GROUP,
        selector,
        _Rules((*submitter, *custom.ingress), custom.egress),
    )
    own = {entry.group_name: _Rules(entry.ingress_rules, entry.egress_rules) for entry in config.worker_groups}
    for group in cluster.spec.worker_group_specs:
        selector = {labels.NODE_TYPE: labels.WORKER, labels.GROUP: group.group_name}
        rules = own.get(group.group_name, _rules(config.worker))
        yield _policy(cluster, config, f"{name}-workers-{group.group_name}", group.group_name, selector, rules)


def _rules(given: NetworkPolicyRules | None) -> _Rules:
    return _Rules() if given is None else _Rules(given.ingress_rules, given.egress_rules)


def _policy(
    cluster: RayCluster, config: NetworkPolicyConfig, name: str, group: str, selector: Json, rules: _Rules
) -> Json:
    """Everything but the cluster's own pods is shut out, or in, but for `rules`."""
    directions = DIRECTIONS[config.mode or DEFAULT_MODE]
    peers = [{"podSelector": {"matchLabels": {labels.CLUSTER: cluster.metadata.name}}}]
    spec: Json = {
        "podSelector": {"matchLabels": {labels.CLUSTER: cluster.metadata.name, **selector}},
        "policyTypes": list(directions),
    }
    if "Ingress" in directions:
        spec["ingress"] = [{"from": peers}, *map(_with_protocols, rules.ingress)]
    if "Egress" in directions:
        spec["egress"] = [{"to": peers}, *map(_with_protocols, rules.egress)]
    own = {labels.GROUP: group, labels.APP_NAME: labels.APP, labels.CREATED_BY: labels.CREATOR}
    metadata = child_metadata(cluster, name, own)
    return {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": spec}


def _with_protocols(rule: Json) -> Json:
    """The rule as the API server stores it: a port without a protocol is one of TCP."""
    filled = copy.deepcopy(rule)
    for entry in filled.get("ports") or ():
        entry.setdefault("protocol", "TCP")
    return filled


def _submitter_rules(cluster: RayCluster) -> Iterator[Json]:
    """The pods of a RayJob's submitter reach the dashboard of the cluster that was made for them."""
    meta = cluster.metadata
    owner = next((owner for owner in meta.owner_references if owner.controller), None)
    made_for_job = owner is not None and owner.kind == "RayJob" and owner.api_version.startswith("ray.io/")
    if owner is None or not made_for_job or meta.labels.get(labels.SUBMISSION_MODE) != _BY_SUBMITTER:
        return
    pods = {labels.ORIGIN_NAME: owner.name, labels.ORIGIN_KIND: "RayJob"}
    dashboard = port(cluster.spec.head_group_spec.ray_start_params, "dashboard-port", DASHBOARD_PORT)
    yield {
        "from": [{"podSelector": {"matchLabels": pods}}],
        "ports": [{"protocol": "TCP", "port": dashboard}],
    }
