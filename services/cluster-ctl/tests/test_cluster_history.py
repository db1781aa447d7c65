"""The history server's collector: what it needs to be told, and where it runs."""

from typing import Any

import pytest

from raybus.api.decision import CreatePods, Decision
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import DEFAULT_GATES, ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs(gates=DEFAULT_GATES | {"RayClusterHistoryServer"}))
S3 = {"STORAGE_BACKEND": "S3", "S3_REGION": "x"}


def collector(env: dict[str, str], **more: Any) -> kit.Json:
    entries = [{"name": name, "value": value} for name, value in env.items()]
    return {"collectorOptions": {"image": "example.test/collector:1", "env": entries, **more}}


def decide(options: kit.Json, **head: Any) -> Decision:
    spec = {"historyServerOptions": options, "headGroupSpec": {"template": kit.template(), **head}}
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, kit.raycluster("c", kit.group("w", 1), spec=spec)))
    assert value is not None
    return CONTROLLER.decide(value, Instant(1.0), CONTROLLER.knobs)


WRONG: dict[str, tuple[kit.Json, str]] = {
    "no collector": ({}, "collectorOptions must be set"),
    "no image": (collector(S3, image=""), "image must be set"),
    "a reserved variable": (collector({**S3, "POD_IP": "1"}), "must not contain POD_IP"),
    "no backend": (collector({}), "STORAGE_BACKEND"),
    "a backend without its bucket": (collector({"STORAGE_BACKEND": "gcs"}), "GCS_BUCKET"),
    "Azure by text without the text": (
        collector(
            {
                "STORAGE_BACKEND": "AzureBlob",
                "AZURE_STORAGE_AUTH_MODE": "connection_string",
                "AZURE_STORAGE_ACCOUNT_URL": "x",
            }
        ),
        "AZURE_STORAGE_CONNECTION_STRING",
    ),
}


@pytest.mark.parametrize(("options", "says"), WRONG.values(), ids=WRONG)
def test_a_collector_that_could_not_work(options: kit.Json, says: str) -> None:
    (note,) = decide(options).notes
    assert note.reason == Reason.INVALID_RAY_CLUSTER_SPEC and says in note.text


@pytest.mark.parametrize("env", [S3, {"STORAGE_BACKEND": "AzureBlob", "AZURE_STORAGE_ACCOUNT_URL": "x"}])
def test_every_pod_has_one_that_shares_the_logs(env: dict[str, str]) -> None:
    pods = [intent.template["spec"] for intent in decide(collector(env)).intents if isinstance(intent, CreatePods)]
    assert len(pods) == 2
    for spec in pods:
        ray, beside = spec["containers"]
        assert beside["name"] == "ray-history-collector"
        for container in (ray, beside):
            assert {"name": "ray-logs", "mountPath": "/tmp/ray"} in container["volumeMounts"]
        assert {"name": "RAY_enable_ray_event", "value": "true"} in ray["env"]


def test_its_name_cannot_be_that_of_another_container() -> None:
    template = kit.template()
    template["spec"]["containers"].append({"name": "ray-history-collector", "image": "x"})
    (note,) = decide(collector(S3), template=template).notes
    assert "ray-history-collector" in note.text
