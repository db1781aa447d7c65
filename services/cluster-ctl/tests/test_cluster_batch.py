"""Batch schedulers: objects beside the pods and marks on them (contract objects §6)."""

from typing import Any

import msgspec

from raybus.api.decision import Create, CreatePods, Decision, Delete, Patch, Ref
from raybus.api.messages import Presence
from raybus.api.subjects import PRESENCE
from raybus.api.times import Instant
from raybus.api.view import Entry
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit

NOW = Instant(1_800_000_000.0)
VOLCANO, PLUGINS = "PodGroup.volcano", "PodGroup.scheduler-plugins"
CPU = kit.template(resources={"limits": {"cpu": "500m"}})


def decide(scheduler: str, owner: kit.Json, *more: kit.Json, there: tuple[Ref, bool] | None = None) -> Decision:
    control = controller(ClusterKnobs(batch_scheduler=scheduler))
    view = kit.view_of(control, owner, kit.head_service(owner), *more)
    if there is not None:
        ref, exists = there
        entry = Entry(value=Presence(ref=ref, exists=exists))
        view = msgspec.structs.replace(view, entries={**view.entries, (PRESENCE, f"{ref.kind}/{ref.name}"): entry})
    value = control.gather(view)
    assert value is not None
    return control.decide(value, NOW, control.knobs)


def cluster(labels: dict[str, str] | None = None, spec: kit.Json | None = None) -> kit.Json:
    group = kit.group("w", 3, minReplicas=1, template=CPU)
    return kit.raycluster("c", group, spec={"headGroupSpec": {"template": CPU}, **(spec or {})}, labels=labels or {})


def beside(owner: kit.Json, kind: str, name: str, spec: kit.Json, **metadata: Any) -> kit.Json:
    meta = kit.head(owner, name)["metadata"]
    return {"kind": kind, "metadata": {**meta, **metadata}, "spec": spec}


def pods(decision: Decision) -> list[kit.Json]:
    return [intent.template for intent in decision.intents if isinstance(intent, CreatePods)]


def test_volcano_makes_its_pod_group_before_any_pod() -> None:
    owner = cluster()
    (create,) = decide("volcano", owner).intents
    assert isinstance(create, Create) and create.ref == Ref(VOLCANO, kit.NAMESPACE, "ray-c-pg")
    assert create.body["spec"] == {"minMember": 4, "minResources": {"cpu": "2"}}
    there = beside(owner, VOLCANO, "ray-c-pg", create.body["spec"])
    templates = pods(decide("volcano", owner, there))
    assert {pod["spec"]["schedulerName"] for pod in templates} == {"volcano"} and len(templates) == 2
    assert templates[1]["metadata"]["annotations"]["volcano.sh/task-spec"] == "w"


def test_volcano_follows_the_size_and_nothing_else() -> None:
    owner = cluster({"volcano.sh/queue-name": "q"})
    old = beside(owner, VOLCANO, "ray-c-pg", {"minMember": 3, "minResources": {"cpu": "2000m"}})
    (patch,) = [intent for intent in decide("volcano", owner, old).intents if isinstance(intent, Patch)]
    assert [operation["path"] for operation in patch.operations] == ["/spec/minMember"]


def test_volcano_counts_the_least_with_autoscaling() -> None:
    owner = cluster(spec={"enableInTreeAutoscaling": True})
    (create,) = [i for i in decide("volcano", owner).intents if isinstance(i, Create) and i.ref.kind == VOLCANO]
    assert create.body["spec"] == {"minMember": 2, "minResources": {"cpu": "1"}}


def test_volcano_topology_needs_a_number() -> None:
    mode = {"volcano.sh/network-topology-mode": "hard"}
    tier = "volcano.sh/network-topology-highest-tier-allowed"
    (create,) = decide("volcano", cluster({**mode, tier: "2"})).intents
    assert isinstance(create, Create)
    assert create.body["spec"]["networkTopology"] == {"mode": "hard", "highestTierAllowed": 2}
    wrong = decide("volcano", cluster({**mode, tier: "two"}))
    assert not wrong.intents and len(wrong.notes) == 1 and tier in wrong.notes[0].text


def test_pods_of_a_rayjob_wait_for_its_pod_group() -> None:
    owner = cluster({"ray.io/originated-from-crd": "RayJob", "ray.io/originated-from-cr-name": "job"})
    ref = Ref(VOLCANO, kit.NAMESPACE, "ray-job-pg")
    waiting = decide("volcano", owner)
    assert not waiting.intents and waiting.needs == (ref,)
    assert len(pods(decide("volcano", owner, there=(ref, True)))) == 2


def test_yunikorn_says_the_gang_on_each_pod() -> None:
    owner = cluster({"ray.io/gang-scheduling-enabled": "false", "yunikorn.apache.org/queue": "q"})
    head, worker = pods(decide("yunikorn", owner))
    groups = msgspec.json.decode(worker["metadata"]["annotations"]["yunikorn.apache.org/task-groups"])
    assert [(group["name"], group["minMember"]) for group in groups] == [("headgroup", 1), ("w", 1)]
    assert worker["metadata"]["annotations"]["yunikorn.apache.org/task-group-name"] == "w"
    assert head["metadata"]["labels"]["queue"] == "q" and head["spec"]["schedulerName"] == "yunikorn"


def test_scheduler_plugins_make_one_pod_group_once() -> None:
    owner, ref = cluster({"ray.io/gang-scheduling-enabled": ""}), Ref(PLUGINS, kit.NAMESPACE, "c")
    assert not decide("scheduler-plugins", owner).intents
    (create,) = decide("scheduler-plugins", owner, there=(ref, False)).intents
    assert isinstance(create, Create) and create.body["spec"]["minMember"] == 4
    for decision in (
        decide("scheduler-plugins", owner, there=(ref, True)),
        decide("scheduler-plugins", owner, beside(owner, PLUGINS, "c", {"minMember": 99})),
    ):
        head, _ = pods(decision)
        assert head["spec"]["schedulerName"] == "scheduler-plugins-scheduler" and len(decision.intents) == 2
        assert head["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "c"
    assert len(pods(decide("scheduler-plugins", cluster()))) == 2


WAS = "kubernetes-was"
GANG = {"ray.io/gang-scheduling-enabled": "True"}


def workload(owner: kit.Json, count: int, **metadata: Any) -> kit.Json:
    policy = {"name": "cluster", "schedulingPolicy": {"gang": {"minCount": count}}}
    return beside(owner, "Workload", "c", {"podGroupTemplates": [policy]}, **metadata)


def pod_group(owner: kit.Json, count: int, **metadata: Any) -> kit.Json:
    return beside(owner, "PodGroup", "c-cluster", {"schedulingPolicy": {"gang": {"minCount": count}}}, **metadata)


def test_kubernetes_makes_the_workload_then_the_group_then_pods() -> None:
    owner = cluster(GANG)
    (first,) = decide(WAS, owner).intents
    (second,) = decide(WAS, owner, workload(owner, 4)).intents
    assert isinstance(first, Create) and isinstance(second, Create)
    assert [first.ref.kind, second.ref.kind] == ["Workload", "PodGroup"]
    head, _ = pods(decide(WAS, owner, workload(owner, 4), pod_group(owner, 4)))
    assert head["spec"]["schedulingGroup"] == {"podGroupName": "c-cluster"}


def test_kubernetes_takes_both_away_when_the_size_changes() -> None:
    owner, protection = cluster(GANG), ["scheduling.k8s.io/podgroup-protection"]
    (delete,) = decide(WAS, owner, workload(owner, 3), pod_group(owner, 3, finalizers=protection)).intents
    assert isinstance(delete, Delete) and delete.ref.kind == "PodGroup"
    going = pod_group(owner, 3, finalizers=protection, deletionTimestamp="2026-01-01T00:00:00Z")
    (patch,) = decide(WAS, owner, workload(owner, 3), going).intents
    assert isinstance(patch, Patch) and patch.operations[-1]["op"] == "remove"
    (last,) = decide(WAS, owner, workload(owner, 3)).intents
    assert isinstance(last, Delete) and last.ref.kind == "Workload"


def test_kubernetes_removes_what_a_cluster_is_not_to_have_any_more_and_pods_wait() -> None:
    for owner in (cluster(), cluster(GANG, {"enableInTreeAutoscaling": True})):
        decision = decide(WAS, owner, workload(owner, 4))
        assert not pods(decision) and any(isinstance(intent, Delete) for intent in decision.intents)
    plain, _ = pods(decide(WAS, cluster()))
    assert "schedulingGroup" not in plain["spec"] and "schedulerName" not in plain["spec"]
