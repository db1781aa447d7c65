"""docs/metrics.md names the metrics that there are, with their types, and the labels of those about roots; these are
those of the contract (platform §7.1), RayServices apart."""

import re
from pathlib import Path

from prometheus_client import Counter, Gauge, Histogram

from raybus.cluster_ctl.gauges import GAUGES as CLUSTERS
from raybus.job_ctl.gauges import GAUGES as JOBS
from raybus.runtime.root_gauges import ROOT_LABELS
from raybus.telemetry import metrics

PAGE = Path(__file__).parents[2] / "docs" / "metrics.md"
ROW = re.compile(
    r"^\| `(?P<name>\w+)` \| (?P<type>gauge|counter|histogram)(, 1)? \| (?P<labels>[^|]*) \|", re.MULTILINE
)

OF_LOOPS = {"workqueue_depth": "gauge", "controller_runtime_active_workers": "gauge"}
"""What `Loops.readings` adds; the runtime's own tests read them."""

KUBERAY = {
    "kuberay_cluster_provisioned_duration_seconds": "name, namespace, uid",
    "kuberay_cluster_info": "name, namespace, uid, owner_kind",
    "kuberay_cluster_condition_provisioned": "name, namespace, uid, condition",
    "kuberay_job_execution_duration_seconds": "name, namespace, uid, job_deployment_status, retry_count",
    "kuberay_job_info": "name, namespace, uid",
    "kuberay_job_deployment_status": "name, namespace, uid, deployment_status",
}
"""The contract's table."""


def of_roots() -> dict[str, str]:
    """Gauge -> labels."""
    gauges = [gauge for table in (CLUSTERS, JOBS) for gauge in (*table.states, *table.durations)]
    return {gauge.name: ", ".join(ROOT_LABELS + gauge.labels) for gauge in gauges}


def counted() -> dict[str, str]:
    """Metric as it is called on the page of a service -> type."""
    found = [value for value in vars(metrics).values() if isinstance(value, Counter | Gauge | Histogram)]
    families = [family for metric in found for family in metric.describe()]
    return {f"{f.name}_total" if f.type == "counter" else f.name: f.type for f in families}


def test_gauges_of_roots_are_those_of_the_contract() -> None:
    assert of_roots() == KUBERAY


def test_the_page_names_every_metric_and_its_type() -> None:
    rows = {row["name"]: row["type"] for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
    assert rows == counted() | OF_LOOPS | dict.fromkeys(of_roots(), "gauge")


def test_the_page_names_the_labels_of_the_roots_gauges() -> None:
    rows = {row["name"]: row["labels"].replace("`", "") for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))}
    assert {name: rows[name] for name in KUBERAY} == KUBERAY
