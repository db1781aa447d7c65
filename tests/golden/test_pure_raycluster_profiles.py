"""The golden RayCluster cases of the other profiles (profiles.yaml) on pure decisions alone."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pure_harness import accepted, compare, run_case

from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.service_settings import ClusterSettings, knobs

DEVIATIONS = Path(__file__).parents[2] / "docs" / "deviations.yaml"

CONFIG: Mapping[str, Any] = {
    "head_sidecar_containers": (
        {"name": "audit", "image": "example.test/audit:1", "env": [{"name": "AUDIT_MODE", "value": "head"}]},
    ),
    "worker_sidecar_containers": ({"name": "audit", "image": "example.test/audit:1"},),
    "default_container_envs": (
        {"name": "SITE", "value": "north"},
        {"name": "RAY_PORT", "value": "7001"},
        {"name": "MINE", "value": "from-operator"},
    ),
    "default_pod_annotations": {"example.test/owner": "platform", "example.test/team": "platform"},
    "default_pod_labels": {"example.test/zone": "blue", "example.test/tier": "platform"},
}

PROFILES: Mapping[str, ClusterSettings] = {
    "gates-off": ClusterSettings(
        feature_gates="RayMultiHostIndexing=false,RayJobDeletionPolicy=false,RayServiceIncrementalUpgrade=false,"
        "RayClusterStatusConditions=false"
    ),
    "alpha": ClusterSettings(
        feature_gates="GCSFaultToleranceEmbeddedStorage=true,RayClusterNetworkPolicy=true,RayClusterMTLS=true,"
        "RayClusterHistoryServer=true"
    ),
    "kai": ClusterSettings(batch_scheduler="kai-scheduler"),
    "volcano": ClusterSettings(batch_scheduler="volcano"),
    "yunikorn": ClusterSettings(batch_scheduler="yunikorn"),
    "env": ClusterSettings(
        enable_deterministic_head_pod_name=True,
        enable_login_shell=True,
        enable_init_container_injection=False,
        enable_probes_injection=False,
        enable_ray_head_cluster_ip_service=True,
        enable_gcs_ft_redis_cleanup=False,
        cluster_domain="golden.test",
    ),
    "config": ClusterSettings(**CONFIG),
}

CASES = {
    "config-cluster": "config",
    "env-cluster": "env",
    "env-ft": "env",
    "gatesoff-cluster": "gates-off",
    "gatesoff-suspend": "gates-off",
    "rc-bad-history": "alpha",
    "rc-bad-np-group": "alpha",
    "rc-bad-np-mode-rules": "alpha",
    "rc-bad-rocksdb-redis": "alpha",
    "rc-bad-tls-env": "alpha",
    "rc-ft-rocksdb": "alpha",
    "rc-ft-rocksdb-adopted": "alpha",
    "rc-ft-rocksdb-claim": "alpha",
    "rc-ft-rocksdb-options": "alpha",
    "rc-history-server": "alpha",
    "rc-network-policy": "alpha",
    "rc-network-policy-egress": "alpha",
    "rc-network-policy-foreign": "alpha",
    "rc-tls": "alpha",
    "kai-cluster": "kai",
    "kai-plain": "kai",
    "volcano-cluster": "volcano",
    "volcano-plain": "volcano",
    "yunikorn-cluster": "yunikorn",
    "yunikorn-plain": "yunikorn",
}


@pytest.mark.parametrize(("case", "profile"), CASES.items())
def test_case_equals_the_recording(case: str, profile: str) -> None:
    rules = compare.accepted_differences(str(DEVIATIONS))
    for label, lines in run_case(case, [controller(knobs(PROFILES[profile]))]):
        left = accepted(lines, label, rules)
        assert not left, f"{label}:\n" + "\n".join(left)
