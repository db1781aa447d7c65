"""The golden RayCluster cases on pure decisions alone: every step equals what KubeRay made.

Not here: cases about what is not built yet, and those that only the API server's own checks refuse.
"""

from pathlib import Path

import pytest
from pure_harness import accepted, compare, run_case

from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs

DEVIATIONS = Path(__file__).parents[2] / "docs" / "deviations.yaml"

CASES = (
    "rc-minimal",
    "rc-two-groups",
    "rc-scale",
    "rc-defaults-omitted",
    "rc-resources-cpu-mem",
    "rc-start-params",
    "rc-start-params-plain",
    "rc-user-command",
    "rc-pod-template",
    "rc-head-gone",
    "rc-pod-waiting",
    "rc-managed-by-self",
    "rc-managed-by-other",
    "rc-bad-name-long",
    "rc-bad-min-max",
    "rc-auth-disabled",
    "rc-bad-auth-version",
    "rc-bad-autoscaler-env",
    "rc-bad-autoscaler-idle",
    "rc-bad-autoscaler-restart",
    "rc-bad-ft-address",
    "rc-bad-ft-both",
    "rc-bad-ft-password",
    "rc-bad-ft-rocksdb-gate",
    "rc-bad-group-label-value",
    "rc-bad-group-labels",
    "rc-bad-group-resources",
    "rc-bad-idle-timeout",
    "rc-bad-labels-param",
    "rc-bad-min-negative",
    "rc-bad-name-digit",
    "rc-bad-no-containers",
    "rc-bad-np-gate",
    "rc-bad-priority",
    "rc-bad-redis-username",
    "rc-bad-tls-gate",
    "rc-bad-upgrade-origin",
    "rc-auth-empty",
    "rc-auth-k8s",
    "rc-auth-secret-existing",
    "rc-auth-secret-name",
    "rc-auth-token",
    "rc-autoscaler-sa",
    "rc-autoscaler-sa-missing",
    "rc-autoscaler-unset",
    "rc-autoscaler-v1",
    "rc-autoscaler-v2",
    "rc-env",
    "rc-ft-annotation",
    "rc-ft-annotation-false",
    "rc-ft-empty",
    "rc-ft-redis",
    "rc-ft-redis-full",
    "rc-ft-redis-literal",
    "rc-group-removed",
    "rc-group-resources-labels",
    "rc-head-name",
    "rc-head-service-clusterip",
    "rc-init-name-clash",
    "rc-multihost",
    "rc-origin-label",
    "rc-overwrite-cmd",
    "rc-overwrite-cmd-one-group",
    "rc-probes-nightly",
    "rc-probes-old",
    "rc-resources-accel",
    "rc-upgrade-none",
    "rc-upgrade-recreate",
    "rc-suspend",
    "rc-user-ray-start",
    "rc-volumes",
    "rc-head-service-annotations",
    "rc-head-service-lb",
    "rc-head-service-user",
    "rc-head-service-user-clash",
    "rc-host-network",
    "rc-ingress",
    "rc-ingress-foreign",
    "rc-ingress-plain",
    "rc-long-name",
    "rc-long-name-40",
    "rc-pod-overhead",
    "rc-probes",
    "rc-serve-service",
    "rc-serve-service-no-port",
)


@pytest.mark.parametrize("case", CASES)
def test_case_equals_the_recording(case: str) -> None:
    rules = compare.accepted_differences(str(DEVIATIONS))
    for label, lines in run_case(case, [controller(ClusterKnobs())]):
        left = accepted(lines, label, rules)
        assert not left, f"{label}:\n" + "\n".join(left)
