"""Services of the head and of Serve, and the way in to the dashboard."""

from typing import Any

import pytest

from raybus.api.decision import Create, Decision, Intent, Patch, Ref
from raybus.api.messages import Presence, Refusal, Result, fingerprint
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.names import route_name, short_name
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs())
NOW = Instant(1_800_000_000.0)


def decide(cluster: kit.Json, *children: kit.Json, knobs: ClusterKnobs | None = None, **view: Any) -> Decision:
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, cluster, *children, **view))
    assert value is not None
    return CONTROLLER.decide(value, NOW, knobs or CONTROLLER.knobs)


def with_head(ports: list[kit.Json] | None = None, annotations: kit.Json | None = None, **head: Any) -> kit.Json:
    template = kit.template() if ports is None else kit.template(ports=ports)
    return kit.raycluster("c", spec={"headGroupSpec": {"template": template, **head}}, annotations=annotations or {})


def find(decision: Decision, kind: str, name: str) -> Intent:
    found = [
        i for i in decision.intents if isinstance(i, (Create, Patch)) and i.ref.kind == kind and i.ref.name == name
    ]
    assert len(found) == 1, decision.intents
    return found[0]


def body(decision: Decision, kind: str, name: str) -> kit.Json:
    intent = find(decision, kind, name)
    assert isinstance(intent, Create)
    return intent.body


def stored(made: kit.Json) -> kit.Json:
    return {**made, "metadata": {**made["metadata"], "uid": "u", "resourceVersion": "7"}}


def test_the_users_head_service_keeps_its_own_and_gets_what_ray_needs() -> None:
    given = {
        "metadata": {"name": "front", "labels": {"x": "y", "ray.io/cluster": "other"}, "annotations": {"a": "1"}},
        "spec": {"type": "NodePort", "selector": {"wrong": "one"}, "ports": [{"name": "http", "port": 80}]},
    }
    service = body(decide(with_head(headService=given)), "Service", "front")
    assert service["metadata"]["labels"]["x"] == "y" and service["metadata"]["labels"]["ray.io/cluster"] == "c"
    assert service["metadata"]["annotations"] == {"a": "1"}
    assert service["spec"]["type"] == "NodePort" and "clusterIP" not in service["spec"]
    assert "wrong" not in service["spec"]["selector"]
    assert [port["name"] for port in service["spec"]["ports"]][:2] == ["http", "client"]


def test_workers_look_for_the_head_under_the_users_name() -> None:
    cluster = with_head(headService={"metadata": {"name": "front"}})
    cluster["spec"]["workerGroupSpecs"] = [kit.group("w", 1)]
    assert "front.default.svc.cluster.local" in str(decide(cluster).intents[-1])


def test_a_port_name_that_would_come_twice_is_refused_by_name() -> None:
    cluster = with_head(headService={"spec": {"ports": [{"name": "dashboard", "port": 80}]}})
    (note,) = decide(cluster).notes
    assert note.reason == Reason.INVALID_RAY_CLUSTER_SPEC and "dashboard" in note.text


def test_the_serve_service_is_made_once_with_the_ports_of_serve() -> None:
    ports = [{"name": name, "containerPort": 8000 + n} for n, name in enumerate(("serve", "serve-grpc", "other"))]
    cluster = with_head(ports, {"ray.io/enable-serve-service": "true"})
    service = body(decide(cluster), "Service", "c-serve-svc")
    assert [port["name"] for port in service["spec"]["ports"]] == ["serve", "serve-grpc"]
    assert not [i for i in decide(cluster, stored(service)).intents if isinstance(i, Create) and "serve" in i.ref.name]


def test_a_cluster_without_a_port_of_serve_runs_and_says_so() -> None:
    decision = decide(with_head([{"name": "x", "containerPort": 1}], {"ray.io/enable-serve-service": "true"}))
    assert len(decision.intents) == 2
    assert [note.reason for note in decision.notes] == [Reason.FAILED_TO_CREATE_SERVICE]
    assert decision.status is not None and "serve" in decision.status["reason"]


def test_an_ingress_follows_the_spec_and_nothing_else_touches_it() -> None:
    first = with_head(
        enableIngress=True, annotations={"a": "1", "kubectl.kubernetes.io/last-applied-configuration": "x"}
    )
    made = body(decide(first), "Ingress", "c-head-ingress")
    assert made["metadata"]["annotations"] == {"a": "1", "raybus.io/annotations": "a"}
    with_class = {**made, "spec": {**made["spec"], "ingressClassName": "given"}}
    assert not [i for i in decide(first, stored(with_class)).intents if isinstance(i, Patch)]
    with_class["metadata"]["annotations"] |= {"cloud.test/backend": "x"}
    assert not [i for i in decide(first, stored(with_class)).intents if isinstance(i, Patch)], "of another controller"
    changed = with_head(enableIngress=True, annotations={"b": "2"})
    patch = find(decide(changed, stored(with_class)), "Ingress", "c-head-ingress")
    assert isinstance(patch, Patch) and patch.resource_version == "7"
    assert [(operation["path"], operation["value"]) for operation in patch.operations] == [
        ("/metadata/annotations", {"cloud.test/backend": "x", "b": "2", "raybus.io/annotations": "b"})
    ]


def test_a_foreign_ingress_is_said_and_the_cluster_becomes_ready() -> None:
    cluster = with_head(enableIngress=True)
    intent = find(decide(cluster), "Ingress", "c-head-ingress")
    refusal = Refusal(
        intent=fingerprint(intent),
        ref=Ref("Ingress", kit.NAMESPACE, "c-head-ingress"),
        verb="create",
        code=409,
        reason="name-taken",
        message="belongs to another",
        at=NOW,
        retry_at=NOW,
    )
    result = Result(root_uid=kit.CLUSTER_UID, refusals=(refusal,))
    children = kit.head_service(cluster), kit.head(cluster, "h", **kit.READY)
    status = decide(cluster, *children, result=result).status
    assert status is not None and status["state"] == "ready" and "belongs to another" in status["reason"]


@pytest.mark.parametrize("there", [None, False, True])
def test_a_route_is_made_once_where_routes_are_wanted(there: bool | None) -> None:
    ref = Ref("Route", kit.NAMESPACE, "c-head-route")
    known = [] if there is None else [Presence(ref=ref, exists=there)]
    decision = decide(with_head(enableIngress=True), knobs=ClusterKnobs(openshift_route=True), known=known)
    made = [intent for intent in decision.intents if isinstance(intent, Create) and intent.ref == ref]
    assert bool(made) == (there is False) and ref in decision.needs


def test_short_names_keep_their_end_and_begin_with_a_letter() -> None:
    assert short_name("--------566666--------444433-----------222222----------4444") == (
        "r6666--------444433-----------222222----------4444"
    )
    assert route_name("cv-traffic-training-202402090958", "x" * 21) == "cv-traffic-training-2024020909"
