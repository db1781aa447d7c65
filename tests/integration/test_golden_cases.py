"""The judge: inputs of the recordings, applied to Raybus on a bare cluster, compared field by field with KubeRay."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stacks import running_stack

from raybus.dev.cluster import Cluster
from raybus.dev.stack import Stack

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
CASES = [
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
    "rj-k8s",
    "rj-k8s-options",
    "rj-k8s-template",
    "rj-http",
    "rj-http-retry",
    "rj-deadline",
    "rj-bad-backoff",
    "rj-bad-deadline",
    "rj-bad-nothing",
    "rj-bad-ttl",
    "rj-bad-runtime-env",
    "rj-managed-by-other",
]


@pytest.fixture
def kuberay_like(bare_cluster: Cluster, tmp_path: Path) -> Iterator[Stack]:
    """All services, submitting as KubeRay does."""
    settings = {"RAYBUS_USE_KUBERNETES_PROXY": "true", "RAYBUS_SUBMITTER": "ray"}
    with running_stack(bare_cluster, tmp_path / "stack", settings) as stack:
        yield stack
        assert stack.ended() == []


def test_every_golden_case_and_step_equals_what_kuberay_made(
    kuberay_like: Stack, bare_cluster: Cluster, dashboard_address: str
) -> None:
    done = subprocess.run(
        [
            *(sys.executable, str(GOLDEN / "compare.py"), "--kubeconfig", str(bare_cluster.kubeconfig)),
            *("--case", *CASES, "--fake-ip", dashboard_address),
            *("--accept", str(ROOT / "docs" / "deviations.yaml")),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    assert re.fullmatch(r"golden: equal=\d+ accepted=\d+ differing=0 skipped=0", last), done.stdout + done.stderr
    assert done.returncode == 0
