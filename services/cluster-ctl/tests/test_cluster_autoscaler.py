"""Autoscaling clusters: what the autoscaler runs as, and who removes workers."""

from typing import Any

from raybus.api.decision import Create, CreatePods, Decision, Delete, Ref
from raybus.api.messages import Presence
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs())
NOW = Instant(1_800_000_000.0)
ACCOUNT = Ref("ServiceAccount", kit.NAMESPACE, "mine")


def decide(
    cluster: kit.Json, *children: kit.Json, there: bool | None = None, knobs: ClusterKnobs | None = None
) -> Decision:
    """`there`: whether the user's ServiceAccount exists, None = not known yet."""
    known = [] if there is None else [Presence(ref=ACCOUNT, exists=there)]
    value = CONTROLLER.gather(kit.view_of(CONTROLLER, cluster, *children, known=known))
    assert value is not None
    return CONTROLLER.decide(value, NOW, knobs or CONTROLLER.knobs)


def autoscaling(*groups: kit.Json, account: str = "", **spec: Any) -> kit.Json:
    template = kit.template()
    if account:
        template["spec"]["serviceAccountName"] = account
    fields = {"headGroupSpec": {"template": template}, "enableInTreeAutoscaling": True, **spec}
    return kit.raycluster("c", *groups, spec=fields)


def made(decision: Decision) -> list[str]:
    return [intent.ref.kind for intent in decision.intents if not isinstance(intent, CreatePods)]


def head_template(decision: Decision) -> kit.Json:
    return next(intent.template for intent in decision.intents if isinstance(intent, CreatePods))


def stored(decision: Decision, *kinds: str) -> list[kit.Json]:
    """Those children as they are in the view once they are made."""
    bodies = [intent.body for intent in decision.intents if isinstance(intent, Create) and intent.ref.kind in kinds]
    return [{**body, "metadata": {**body["metadata"], "uid": "u", "resourceVersion": "1"}} for body in bodies]


def test_account_and_rights_are_made_with_the_cluster_and_not_again() -> None:
    cluster = autoscaling()
    first = decide(cluster)
    assert made(first) == ["ServiceAccount", "Role", "Service"], "a binding needs its Role"
    there = stored(first, "ServiceAccount", "Role")
    second = decide(cluster, *there)
    assert made(second) == ["RoleBinding", "Service"]
    assert made(decide(cluster, *there, *stored(second, "RoleBinding"))) == ["Service"]
    assert head_template(first)["spec"]["serviceAccountName"] == cluster["metadata"]["name"]


def test_a_named_account_is_waited_for_and_its_absence_is_said() -> None:
    cluster = autoscaling(account="mine")
    unknown = decide(cluster)
    assert not unknown.intents and unknown.status is None and unknown.needs == (ACCOUNT,)
    missing = decide(cluster, there=False)
    assert not missing.intents and missing.needs == (ACCOUNT,)
    assert [note.reason for note in missing.notes] == [Reason.AUTOSCALER_SERVICE_ACCOUNT_NOT_FOUND]
    assert missing.status is not None and "mine" in missing.status["reason"]
    there = decide(cluster, there=True)
    assert made(there) == ["Role", "Service"] and there.needs == (ACCOUNT,)
    assert head_template(there)["spec"]["serviceAccountName"] == "mine"


def test_a_running_head_does_not_suffer_from_an_account_that_was_deleted() -> None:
    cluster = autoscaling(kit.group("w", 1), account="mine")
    decision = decide(cluster, kit.head(cluster, "h", **kit.READY), there=False)
    assert any(isinstance(intent, CreatePods) for intent in decision.intents)


def test_surplus_workers_are_the_autoscalers_business() -> None:
    cluster = autoscaling(kit.group("w", 1))
    pods = [kit.head(cluster, "h", **kit.READY), *(kit.worker(cluster, f"w{i}", "w", i) for i in range(3))]
    assert not [intent for intent in decide(cluster, *pods).intents if isinstance(intent, Delete)]
    forced = decide(cluster, *pods, knobs=ClusterKnobs(random_pod_delete=True))
    assert len([intent for intent in forced.intents if isinstance(intent, Delete)]) == 2


def test_pods_that_the_autoscaler_names_go_and_are_not_replaced() -> None:
    cluster = autoscaling(kit.group("w", 1, scaleStrategy={"workersToDelete": ["w1"]}))
    pods = [kit.head(cluster, "h", **kit.READY), *(kit.worker(cluster, f"w{i}", "w", i) for i in range(2))]
    intents = decide(cluster, *pods).intents
    assert [intent.ref.name for intent in intents if isinstance(intent, Delete)] == ["w1"]
    assert not [intent for intent in intents if isinstance(intent, CreatePods)]


def test_version_1_with_workers_that_restart_is_said_and_works() -> None:
    template = kit.template()
    template["spec"]["restartPolicy"] = "OnFailure"
    cluster = autoscaling(kit.group("w", 1, template=template), autoscalerOptions={"version": "v1"})
    decision = decide(cluster)
    assert [(note.type, note.reason) for note in decision.notes] == [("Warning", Reason.INVALID_RAY_CLUSTER_SPEC)]
    assert len([intent for intent in decision.intents if isinstance(intent, CreatePods)]) == 2
