"""The types on the wire: what is written always, what is left out, and that decoding does not fail."""

import json
from typing import Any

import msgspec
import pytest

from raybus.api.v1 import (
    Condition,
    HeadInfo,
    JobDeploymentStatus,
    RayCluster,
    RayClusterStatus,
    RayCronJob,
    RayJob,
    RayJobStatus,
    RayService,
    RayServiceStatus,
    WorkerGroupSpec,
)

KINDS = (RayCluster, RayJob, RayService, RayCronJob)

EMPTY_CLUSTER_STATUS = {"desiredCPU": "0", "desiredMemory": "0", "desiredGPU": "0", "desiredTPU": "0", "head": {}}

STATUS_CASES: dict[str, tuple[msgspec.Struct, dict[str, Any]]] = {
    "an untouched cluster status is zero quantities and an empty head": (RayClusterStatus(), EMPTY_CLUSTER_STATUS),
    "an untouched job status has its counters": (
        RayJobStatus(),
        {"succeeded": 0, "failed": 0, "rayJobInfo": {}, "rayClusterStatus": EMPTY_CLUSTER_STATUS},
    ),
    "an untouched service status has both clusters": (
        RayServiceStatus(),
        {
            "activeServiceStatus": {"rayClusterStatus": EMPTY_CLUSTER_STATUS},
            "pendingServiceStatus": {"rayClusterStatus": EMPTY_CLUSTER_STATUS},
        },
    ),
    "a condition keeps its empty message": (
        Condition(type="HeadPodReady", status="False", reason="Unknown", last_transition_time="2026-01-01T00:00:00Z"),
        {
            "type": "HeadPodReady",
            "status": "False",
            "reason": "Unknown",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        },
    ),
    "names that camel case would get wrong": (
        HeadInfo(pod_ip="10.0.0.1", service_ip="10.0.0.2", pod_name="p", service_name="s"),
        {"podIP": "10.0.0.1", "serviceIP": "10.0.0.2", "podName": "p", "serviceName": "s"},
    ),
}


@pytest.mark.parametrize("case", STATUS_CASES)
def test_what_a_status_looks_like_on_the_wire(case: str) -> None:
    value, expected = STATUS_CASES[case]
    assert json.loads(msgspec.json.encode(value)) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_an_object_with_nothing_in_it_decodes_to_the_zero_value(kind: type[msgspec.Struct]) -> None:
    assert msgspec.json.decode(b"{}", type=kind) == kind()


@pytest.mark.parametrize("kind", KINDS)
def test_fields_of_a_later_version_are_ignored(kind: type[msgspec.Struct]) -> None:
    raw = b'{"later":1,"metadata":{"later":[]},"spec":{"later":{"x":1}},"status":{"later":null}}'
    assert msgspec.json.decode(raw, type=kind) == kind()


def test_absent_and_zero_are_told_apart_where_go_holds_a_pointer() -> None:
    group = msgspec.json.decode(b'{"groupName":"w","minReplicas":0,"suspend":false}', type=WorkerGroupSpec)
    assert (group.min_replicas, group.max_replicas, group.suspend) == (0, None, False)
    assert json.loads(msgspec.json.encode(group)) == {"groupName": "w", "minReplicas": 0, "suspend": False}


def test_words_outside_the_known_sets_and_values_below_a_minimum_decode() -> None:
    spec = b'{"submissionMode":"Telepathy","preRunningDeadlineSeconds":-1,"managedBy":""}'
    job = msgspec.json.decode(b'{"spec":' + spec + b',"status":{"jobStatus":"NEW"}}', type=RayJob)
    assert (job.spec.submission_mode, job.spec.pre_running_deadline_seconds) == ("Telepathy", -1)
    assert job.spec.managed_by == ""
    assert job.status.job_status == "NEW"


def test_integers_pass_for_fractions_and_for_quantities() -> None:
    job = msgspec.json.decode(b'{"spec":{"entrypointNumCpus":2}}', type=RayJob)
    assert job.spec.entrypoint_num_cpus == 2.0
    assert msgspec.json.decode(b'{"desiredCPU":3}', type=RayClusterStatus).desired_cpu == 3


def test_a_pod_template_is_kept_to_the_letter() -> None:
    template = {"metadata": {}, "spec": {"containers": [{"name": "ray", "resources": {}, "stdin": False, "x": None}]}}
    raw = json.dumps({"spec": {"headGroupSpec": {"template": template}}}).encode()
    cluster = msgspec.json.decode(raw, type=RayCluster)
    assert json.loads(msgspec.json.encode(cluster))["spec"]["headGroupSpec"]["template"] == template


def test_enum_members_are_the_words_on_the_wire() -> None:
    status = RayJobStatus(job_deployment_status=JobDeploymentStatus.VALIDATION_FAILED)
    assert json.loads(msgspec.json.encode(status))["jobDeploymentStatus"] == "ValidationFailed"
