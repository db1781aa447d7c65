"""The golden RayJob cases on pure decisions alone: every step equals what KubeRay made."""

from pathlib import Path
from typing import Any

import pytest
from pure_harness import accepted, compare, run_case

from raybus.cluster_ctl.controller import controller as cluster_controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.job_ctl.controller import controller as job_controller
from raybus.job_ctl.settings import JobKnobs
from raybus.runtime.controller import Controller

DEVIATIONS = Path(__file__).parents[2] / "docs" / "deviations.yaml"

CASES = (
    "rj-k8s",
    "rj-k8s-options",
    "rj-k8s-template",
    "rj-k8s-template-command",
    "rj-http",
    "rj-http-retry",
    "rj-deadline",
    "rj-prerun-deadline",
    "rj-bad-backoff",
    "rj-bad-deadline",
    "rj-bad-interactive",
    "rj-bad-name",
    "rj-bad-nothing",
    "rj-bad-rayversion-metadata",
    "rj-bad-rules",
    "rj-bad-rules-shutdown",
    "rj-bad-runtime-env",
    "rj-bad-selector-backoff",
    "rj-bad-selector-key",
    "rj-bad-sidecar-restart",
    "rj-bad-sidecar-template",
    "rj-bad-suspend",
    "rj-bad-ttl",
    "rj-managed-by-other",
    "rj-unknown-mode",
)


@pytest.mark.parametrize("case", CASES)
def test_case_equals_the_recording(case: str) -> None:
    rules = compare.accepted_differences(str(DEVIATIONS))
    controllers: list[Controller[Any, Any]] = [
        cluster_controller(ClusterKnobs()),
        job_controller(JobKnobs(submitter="ray")),
    ]
    for label, lines in run_case(case, controllers):
        left = accepted(lines, label, rules)
        assert not left, f"{label}:\n" + "\n".join(left)
