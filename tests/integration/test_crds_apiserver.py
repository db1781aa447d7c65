"""The CRDs on a real API server: pruning, defaulting, refusals, merging by list keys, explain, and v1alpha1."""

import copy
import json
import subprocess
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from raybus.api.crdgen.crd import RESOURCES
from raybus.api.v1 import RayCluster, RayJob
from raybus.dev.errors import DevError
from raybus.dev.kubectl import Kubectl

Node = dict[str, Any]
Apply = Callable[..., Node]

TEMPLATE: Node = {"spec": {"containers": [{"name": "ray", "image": "example.test/ray:2.52.0"}]}}
CLUSTER_SPEC: Node = {
    "headGroupSpec": {"template": TEMPLATE},
    "workerGroupSpecs": [{"groupName": "w", "template": TEMPLATE}],
}


def manifest(kind: str, spec: Node, version: str = "v1") -> Node:
    return {"apiVersion": f"ray.io/{version}", "kind": kind, "metadata": {"name": "x"}, "spec": copy.deepcopy(spec)}


@pytest.fixture
def apply(kubectl: Kubectl, namespace: str) -> Apply:
    """Server-side apply of one object in the test's namespace by a named field manager; gives what was stored."""

    def send(body: Node, manager: str = "one") -> Node:
        flags = ("--server-side", f"--field-manager={manager}", "-n", namespace, "-o", "json", "-f", "-")
        stored: Node = json.loads(kubectl("apply", *flags, stdin=json.dumps(body)))
        return stored

    return send


def test_unknown_fields_are_pruned_and_known_ones_are_kept(kubectl: Kubectl, namespace: str) -> None:
    body = manifest("RayCluster", CLUSTER_SPEC | {"rayVersion": "2.52.0", "later": 1})
    body["spec"]["headGroupSpec"]["template"] = {
        "metadata": {"labels": {"a": "b"}, "generateName": "gone-"},
        "spec": {**TEMPLATE["spec"], "tolerations": [{"key": "gpu", "operator": "Exists"}], "later": True},
    }
    kubectl("create", "-n", namespace, "--validate=ignore", "-f", "-", stdin=json.dumps(body))
    spec = kubectl.json("get", "raycluster", "x", "-n", namespace)["spec"]
    assert spec["rayVersion"] == "2.52.0"
    assert "later" not in spec
    template = spec["headGroupSpec"]["template"]
    assert template["metadata"] == {"labels": {"a": "b"}}
    assert template["spec"]["tolerations"] == [{"key": "gpu", "operator": "Exists"}]
    assert "later" not in template["spec"]


def test_unknown_fields_are_named_to_their_author(kubectl: Kubectl, namespace: str, apply: Apply) -> None:
    body = manifest("RayCluster", CLUSTER_SPEC | {"later": 1})
    with pytest.raises(DevError, match=r'unknown field "spec\.later"'):
        kubectl("create", "-n", namespace, "--validate=strict", "-f", "-", stdin=json.dumps(body))
    with pytest.raises(DevError, match=r"\.spec\.later: field not declared in schema"):
        apply(body)


def test_defaults_are_filled_in(apply: Apply) -> None:
    job = apply(manifest("RayJob", {"rayClusterSpec": CLUSTER_SPEC}))["spec"]
    assert {key: job[key] for key in ("backoffLimit", "submissionMode", "ttlSecondsAfterFinished")} == {
        "backoffLimit": 0,
        "submissionMode": "K8sJobMode",
        "ttlSecondsAfterFinished": 0,
    }
    group = job["rayClusterSpec"]["workerGroupSpecs"][0]
    names = ("replicas", "minReplicas", "maxReplicas", "numOfHosts", "priority")
    assert [group[name] for name in names] == [0, 0, 2147483647, 1, 0]
    read = msgspec.convert(job, type(RayJob().spec))
    assert read.ray_cluster_spec is not None
    assert read.ray_cluster_spec.worker_group_specs[0].max_replicas == 2147483647


def test_what_the_types_write_is_accepted(apply: Apply) -> None:
    read = msgspec.convert(manifest("RayCluster", CLUSTER_SPEC), RayCluster)
    stored = apply(json.loads(msgspec.json.encode(read)))
    assert stored["spec"]["headGroupSpec"]["template"] == TEMPLATE


REFUSED: dict[str, tuple[str, Node, str]] = {
    "a cluster without a head": ("RayCluster", {"rayVersion": "2.52.0"}, "headGroupSpec: Required value"),
    "a foreign manager": ("RayCluster", CLUSTER_SPEC | {"managedBy": "me"}, "managedBy must be"),
    "an unknown upgrade type": (
        "RayCluster",
        CLUSTER_SPEC | {"upgradeStrategy": {"type": "Maybe"}},
        "Unsupported value",
    ),
    "no time at all to start": ("RayJob", {"preRunningDeadlineSeconds": 0}, "greater than or equal to 1"),
    "an empty list of rules": ("RayJob", {"deletionStrategy": {"deletionRules": []}}, "at least 1 items"),
    "an empty deletion strategy": ("RayJob", {"deletionStrategy": {}}, "deletionStrategy needs"),
    "rules beside policies": (
        "RayJob",
        {
            "deletionStrategy": {
                "onSuccess": {"policy": "DeleteNone"},
                "deletionRules": [{"policy": "DeleteNone", "condition": {"jobStatus": "FAILED"}}],
            }
        },
        "not both",
    ),
    "a rule without a state": (
        "RayJob",
        {"deletionStrategy": {"deletionRules": [{"policy": "DeleteNone", "condition": {"ttlSeconds": 1}}]}},
        "needs jobStatus or jobDeploymentStatus",
    ),
    "an empty time zone": (
        "RayCronJob",
        {"schedule": "* * * * *", "timeZone": "", "jobTemplate": {}},
        "at least 1 chars",
    ),
    "a negative delay": (
        "RayService",
        {"rayClusterConfig": CLUSTER_SPEC, "rayClusterDeletionDelaySeconds": -1},
        "greater than or equal to 0",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_the_schema_forbids_is_refused(case: str, apply: Apply) -> None:
    kind, spec, words = REFUSED[case]
    with pytest.raises(DevError, match=words):
        apply(manifest(kind, spec))


def test_the_manager_of_an_object_cannot_be_changed(apply: Apply) -> None:
    apply(manifest("RayCluster", CLUSTER_SPEC | {"managedBy": "ray.io/kuberay-operator"}))
    with pytest.raises(DevError, match="managedBy cannot be changed"):
        apply(manifest("RayCluster", CLUSTER_SPEC | {"managedBy": "kueue.x-k8s.io/multikueue"}))


def test_two_managers_share_a_list_of_containers_by_name(apply: Apply) -> None:
    def body(container: Node) -> Node:
        spec = {"submitterPodTemplate": {"spec": {"containers": [container]}}}
        return manifest("RayJob", spec)

    apply(body({"name": "submit", "image": "example.test/a", "env": [{"name": "A", "value": "1"}]}))
    apply(body({"name": "submit", "env": [{"name": "B", "value": "2"}]}), manager="two")
    stored = apply(body({"name": "log", "image": "example.test/b"}), manager="three")
    containers = {entry["name"]: entry for entry in stored["spec"]["submitterPodTemplate"]["spec"]["containers"]}
    assert set(containers) == {"submit", "log"}
    assert containers["submit"]["image"] == "example.test/a"
    assert {entry["name"]: entry["value"] for entry in containers["submit"]["env"]} == {"A": "1", "B": "2"}


def test_status_is_a_subresource_with_conditions_merged_by_type(kubectl: Kubectl, apply: Apply, namespace: str) -> None:
    apply(manifest("RayCluster", CLUSTER_SPEC))

    def condition(kind: str) -> Node:
        return {
            "type": kind,
            "status": "True",
            "reason": "Because",
            "message": "",
            "lastTransitionTime": "2026-01-31T08:00:00Z",
        }

    for manager, kind in (("one", "HeadPodReady"), ("two", "RayClusterProvisioned")):
        body = manifest("RayCluster", {}) | {"status": {"conditions": [condition(kind)]}}
        del body["spec"]
        flags = ("--server-side", f"--field-manager={manager}", "--subresource=status", "-n", namespace)
        kubectl("apply", *flags, "-f", "-", stdin=json.dumps(body))
    stored = kubectl.json("get", "raycluster", "x", "-n", namespace)
    assert {entry["type"] for entry in stored["status"]["conditions"]} == {"HeadPodReady", "RayClusterProvisioned"}
    assert stored["status"]["conditions"][0]["lastTransitionTime"] == "2026-01-31T08:00:00Z"


EXPLAINED = {
    "rayjob": "A program run on Ray",
    "rayjob.spec": "Shell command of the program",
    "rayjob.spec.ttlSecondsAfterFinished": "Seconds between",
    "rayjob.status.dashboardURL": "without a scheme",
    "raycluster.spec.headGroupSpec.headService.spec.ports": "protocol",
    "raycluster.status": "Number of worker pods",
    "rayservice.spec.upgradeStrategy.clusterUpgradeOptions": "in percent",
    "raycronjob.spec.schedule": "cron fields",
}


@pytest.fixture(scope="module")
def published(kubectl: Kubectl) -> None:
    """Waits until the API server has published the schemas of all kinds: some time after the CRDs."""
    deadline = time.monotonic() + 60
    while True:
        try:
            for resource in RESOURCES:
                kubectl("explain", resource.plural, "--api-version=ray.io/v1")
            return
        except DevError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


@pytest.mark.usefixtures("published")
@pytest.mark.parametrize("path", EXPLAINED)
def test_explain_shows_what_a_field_means(path: str, kubectl: Kubectl) -> None:
    text = " ".join(kubectl("explain", path, "--api-version=ray.io/v1").split())
    assert EXPLAINED[path] in text
    assert "<no description>" not in text


@pytest.mark.parametrize("kind", [resource.struct.__name__ for resource in RESOURCES if resource.deprecated])
def test_v1alpha1_is_served_with_a_warning(kind: str, kubectl: Kubectl, namespace: str) -> None:
    spec = {"rayClusterConfig": CLUSTER_SPEC} if kind == "RayService" else CLUSTER_SPEC
    body = manifest(kind, spec if kind != "RayJob" else {"backoffLimit": 2}, "v1alpha1")
    done = subprocess.run(
        [kubectl.program, f"--kubeconfig={kubectl.kubeconfig}", "apply", "--server-side", "-n", namespace, "-f", "-"],
        input=json.dumps(body),
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"ray.io/v1alpha1 {kind} is deprecated" in done.stderr
    stored = kubectl.json("get", f"{kind.lower()}s.v1.ray.io", "x", "-n", namespace)
    assert stored["apiVersion"] == "ray.io/v1"
    assert kind != "RayJob" or stored["spec"]["backoffLimit"] == 2


def test_the_kinds_are_in_category_all_and_have_upstreams_columns(
    kubectl: Kubectl, apply: Apply, namespace: str
) -> None:
    apply(manifest("RayCluster", CLUSTER_SPEC))
    kubectl("patch", "raycluster", "x", "-n", namespace, "--subresource=status", "--type=merge", "-p", _READY)
    lines = kubectl("get", "raycluster", "x", "-n", namespace).splitlines()
    assert " ".join(lines[0].split()) == "NAME DESIRED WORKERS AVAILABLE WORKERS CPUS MEMORY GPUS STATUS AGE"
    assert lines[1].split()[:2] == ["x", "3"]
    assert "raycluster.ray.io/x" in kubectl("get", "all", "-n", namespace, "-o", "name")


_READY = json.dumps({"status": {"desiredWorkerReplicas": 3, "desiredCPU": "4", "state": "ready"}})


def test_the_stored_crds_stay_below_the_limit_of_etcd(kubectl: Kubectl) -> None:
    for resource in RESOURCES:
        stored = kubectl(
            "get", "--raw", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{resource.plural}.ray.io"
        )
        assert len(stored) < 1_000_000, resource.plural
        conditions = {entry["type"]: entry["status"] for entry in json.loads(stored)["status"]["conditions"]}
        assert conditions["Established"] == "True"
        assert conditions.get("NonStructuralSchema", "False") == "False"
