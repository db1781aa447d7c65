"""The golden RayCluster cases of the other profiles (profiles.yaml) on pure decisions alone."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from pure_harness import accepted, compare, run_case

from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.service_settings import ClusterSettings, knobs

DEVIATIONS = Path(__file__).parents[2] / "docs" / "deviations.yaml"

PROFILES: Mapping[str, ClusterSettings] = {
    "gates-off": ClusterSettings(
        feature_gates="RayMultiHostIndexing=false,RayJobDeletionPolicy=false,RayServiceIncrementalUpgrade=false,"
        "RayClusterStatusConditions=false"
    ),
}

CASES = {
    "gatesoff-cluster": "gates-off",
    "gatesoff-suspend": "gates-off",
}


@pytest.mark.parametrize(("case", "profile"), CASES.items())
def test_case_equals_the_recording(case: str, profile: str) -> None:
    rules = compare.accepted_differences(str(DEVIATIONS))
    for label, lines in run_case(case, [controller(knobs(PROFILES[profile]))]):
        left = accepted(lines, label, rules)
        assert not left, f"{label}:\n" + "\n".join(left)
