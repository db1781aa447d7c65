"""The golden RayCluster cases on pure decisions alone: every step equals what KubeRay made."""

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
)


@pytest.mark.parametrize("case", CASES)
def test_case_equals_the_recording(case: str) -> None:
    rules = compare.accepted_differences(str(DEVIATIONS))
    for label, lines in run_case(case, [controller(ClusterKnobs())]):
        left = accepted(lines, label, rules)
        assert not left, f"{label}:\n" + "\n".join(left)
