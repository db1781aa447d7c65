"""Token authentication: a Secret without its value, and what containers are told."""

from typing import Any

from raybus.api.decision import CreatePods, Decision, GenerateSecret, Ref
from raybus.api.messages import Presence
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs())
NOW = Instant(1_800_000_000.0)


def decide(options: kit.Json, there: bool | None = False) -> Decision:
    cluster = kit.raycluster("c", kit.group("w", 1), spec={"authOptions": options, "rayVersion": "2.55.0"})
    known = [] if there is None else [Presence(ref=Ref("Secret", kit.NAMESPACE, "c"), exists=there)]
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, cluster, known=known))
    assert value is not None
    return CONTROLLER.decide(value, NOW, CONTROLLER.knobs)


def secrets(decision: Decision) -> list[GenerateSecret]:
    return [intent for intent in decision.intents if isinstance(intent, GenerateSecret)]


def containers(decision: Decision) -> list[kit.Json]:
    pods = [intent.template["spec"] for intent in decision.intents if isinstance(intent, CreatePods)]
    return [container for spec in pods for container in (*spec["containers"], *spec.get("initContainers", ()))]


def variables(container: kit.Json) -> dict[str, Any]:
    return {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in container["env"]}


def test_the_secret_is_asked_for_once_it_is_known_not_to_be_there() -> None:
    unknown, missing, there = (decide({"mode": "token"}, known) for known in (None, False, True))
    assert not secrets(unknown) and not secrets(there)
    (intent,) = secrets(missing)
    assert intent.keys == ("auth_token",) and "data" not in intent.body
    assert unknown.needs == missing.needs == there.needs == (intent.ref,)


def test_every_container_that_speaks_with_ray_gets_the_token() -> None:
    decision = decide({"mode": "token"})
    names = [container["name"] for container in containers(decision)]
    assert names == ["ray", "ray", "wait-gcs-ready"]
    for container in containers(decision):
        found = variables(container)
        assert found["RAY_AUTH_MODE"] == "token"
        assert found["RAY_AUTH_TOKEN"]["secretKeyRef"]["key"] == "auth_token"


def test_a_named_secret_is_used_and_none_is_made() -> None:
    decision = decide({"mode": "token", "secretName": "mine"})
    assert not secrets(decision) and not decision.needs
    assert variables(containers(decision)[0])["RAY_AUTH_TOKEN"]["secretKeyRef"]["name"] == "mine"


def test_options_without_a_mode_make_a_secret_and_wire_nothing() -> None:
    decision = decide({})
    assert secrets(decision) and not any("RAY_AUTH_MODE" in variables(found) for found in containers(decision))


def test_tokens_of_kubernetes_are_mounted_and_need_no_secret() -> None:
    decision = decide({"mode": "token", "enableK8sTokenAuth": True})
    assert not secrets(decision)
    for container in containers(decision):
        assert variables(container)["RAY_ENABLE_K8S_TOKEN_AUTH"] == "true"
        assert "ray-token" in [mount["name"] for mount in container["volumeMounts"]]
