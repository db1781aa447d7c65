"""The hash by which a later pass sees that a running cluster was made from another spec (contract reconcile §9.2)."""

from __future__ import annotations

import base64
import hashlib

import msgspec
from msgspec.structs import replace

from raybus.api.decision import Json
from raybus.api.v1 import RayClusterSpec, ScaleStrategy


def spec_hash(spec: RayClusterSpec) -> str:
    """32 characters; equal for specs that differ only in what may change without new pods: the groups' sizes,
    `workersToDelete`, tolerations, scheduling gates, the upgrade strategy itself, and whether the cluster or a group is
    suspended (ADR 0120)."""
    head = replace(spec.head_group_spec, template=_stable(spec.head_group_spec.template))
    groups = tuple(
        replace(
            group,
            template=_stable(group.template),
            replicas=None,
            min_replicas=None,
            max_replicas=None,
            scale_strategy=ScaleStrategy(),
            suspend=None,
        )
        for group in spec.worker_group_specs
    )
    stable = replace(spec, head_group_spec=head, worker_group_specs=groups, upgrade_strategy=None, suspend=None)
    digest = hashlib.sha1(msgspec.json.encode(stable, order="deterministic"), usedforsecurity=False).digest()
    return base64.b32hexencode(digest).decode()


def _stable(template: Json) -> Json:
    spec = {k: v for k, v in (template.get("spec") or {}).items() if k not in ("tolerations", "schedulingGates")}
    return {**template, "spec": spec}
