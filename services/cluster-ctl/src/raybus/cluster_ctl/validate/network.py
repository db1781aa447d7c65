"""Checks of the network policy and of TLS (contract objects §7.2 rules 22 and 23)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from raybus.api.decision import Json
from raybus.api.v1 import NetworkPolicyConfig, RayCluster
from raybus.cluster_ctl.build import tls
from raybus.cluster_ctl.build.network_policy import DEFAULT_MODE, DIRECTIONS
from raybus.cluster_ctl.validate.groups import containers

_DNS_1123 = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_LENGTH = 63
_WITHOUT = {"DenyAllEgress": "ingressRules", "DenyAllIngress": "egressRules"}
"""Mode -> rules that would be without effect in it."""


def network_policy(cluster: RayCluster) -> str | None:
    """Rule 22."""
    config = cluster.spec.network_policy
    if config is None:
        return None
    mode = config.mode or DEFAULT_MODE
    if mode not in DIRECTIONS:
        return f"networkPolicy.mode {mode} is not one of {', '.join(DIRECTIONS)}"
    for place, given in _rules(config):
        field = _WITHOUT.get(mode, "")
        if given.get(field):
            return f"networkPolicy.{place}.{field} cannot be set when mode is {mode}"
    names = [group.group_name for group in cluster.spec.worker_group_specs]
    for name in names:
        if len(name) > _LABEL_LENGTH or not _DNS_1123.fullmatch(name):
            return f"worker group name {name} must be lower case letters, digits and '-' when networkPolicy is set"
    unknown = [entry.group_name for entry in config.worker_groups if entry.group_name not in names]
    return f"networkPolicy.workerGroups names an unknown group: {unknown[0]}" if unknown else None


def _rules(config: NetworkPolicyConfig) -> Iterator[tuple[str, Mapping[str, Sequence[Json]]]]:
    """(place, rules by field) of every part that has rules."""
    groups = {
        f"workerGroups[{entry.group_name}]": (entry.ingress_rules, entry.egress_rules) for entry in config.worker_groups
    }
    parts = {"head": config.head, "worker": config.worker}
    common = {place: (part.ingress_rules, part.egress_rules) for place, part in parts.items() if part is not None}
    for place, (ingress, egress) in {**common, **groups}.items():
        yield place, {"ingressRules": ingress, "egressRules": egress}


def tls_is_ours(cluster: RayCluster) -> str | None:
    """Rule 23: variables and mounts of certificates are set here, not by the user."""
    if not tls.is_on(cluster):
        return None
    for place, env, mounts in _places(cluster):
        for entry in env:
            if entry.get("name") in tls.VARIABLES:
                return f"cannot set {entry['name']} in the environment of {place} together with tlsOptions"
        if any(mount.get("name") == tls.VOLUME or mount.get("mountPath") == tls.PATH for mount in mounts):
            return f"cannot mount {tls.VOLUME} or at {tls.PATH} in {place} together with tlsOptions"
    return None


def _places(cluster: RayCluster) -> Iterator[tuple[str, list[Json], list[Json]]]:
    """(place, environment, mounts) of every container that gets certificates."""
    templates = {"the head": cluster.spec.head_group_spec.template}
    templates |= {f"worker group {group.group_name}": group.template for group in cluster.spec.worker_group_specs}
    for place, template in templates.items():
        for container in containers(template)[:1]:
            yield place, container.get("env") or [], container.get("volumeMounts") or []
    options = cluster.spec.autoscaler_options
    if options is not None:
        yield "the autoscaler", list(options.env), list(options.volume_mounts)
