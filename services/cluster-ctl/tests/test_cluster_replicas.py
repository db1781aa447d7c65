"""Replicas of several hosts are created and deleted as a whole (contract reconcile §11.4, ADR 0121)."""

from collections import defaultdict

from raybus.api.decision import Create, CreatePods, Decision, Delete
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs())
NOW = Instant(1_800_000_000.0)
NAME, INDEX, HOST = "ray.io/worker-group-replica-name", "ray.io/worker-group-replica-index", "ray.io/replica-host-index"


def decide(cluster: kit.Json, *children: kit.Json, knobs: ClusterKnobs | None = None) -> Decision:
    control = controller(knobs or ClusterKnobs())
    value = control.gather(kit.view_of(control, cluster, *children))
    assert value is not None
    return control.decide(value, NOW, control.knobs)


def cluster(replicas: int, hosts: int = 2, **more: object) -> kit.Json:
    return kit.raycluster("c", kit.group("g", replicas, numOfHosts=hosts, **more))


def host(owner: kit.Json, replica: str, number: int, index: int = 0, **status: object) -> kit.Json:
    pod = kit.worker(owner, f"{replica}-{number}", "g", index, **(status or kit.READY))
    named = {**pod["metadata"]["labels"], NAME: replica, HOST: str(number)} if replica else pod["metadata"]["labels"]
    return {**pod, "metadata": {**pod["metadata"], "labels": named}}


def rest(owner: kit.Json) -> tuple[kit.Json, ...]:
    service = kit.head_service(owner)
    headless = {"ray.io/headless-worker-svc": "c"}
    workers = {**service, "metadata": {**service["metadata"], "name": "c-headless", "uid": "s2", "labels": headless}}
    return service, workers, kit.head(owner, "h", **kit.READY)


def slots(decision: Decision) -> dict[str, list[dict[str, str]]]:
    found = defaultdict(list)
    for intent in decision.intents:
        if isinstance(intent, CreatePods):
            for slot in intent.slots:
                found[slot.labels[NAME]].append(slot.labels)
    return found


def deleted(decision: Decision) -> set[str]:
    return {intent.ref.name for intent in decision.intents if isinstance(intent, Delete)}


def test_whole_replicas_with_names_indexes_and_hosts() -> None:
    owner = cluster(2)
    found = slots(decide(owner, *rest(owner)))
    assert len(found) == 2
    assert [{labels[INDEX] for labels in hosts} for hosts in found.values()] == [{"0"}, {"1"}]
    assert all([labels[HOST] for labels in hosts] == ["0", "1"] for hosts in found.values())


def test_the_headless_service_comes_with_the_first_such_group() -> None:
    owner = cluster(1)
    services = [i.ref.name for i in decide(owner).intents if isinstance(i, Create) and i.ref.kind == "Service"]
    assert services == ["c-head-svc", "c-headless"]
    assert not [i for i in decide(owner, *rest(owner)).intents if isinstance(i, Create)]


def test_a_replica_that_lost_a_host_goes_and_counts_until_it_is_gone() -> None:
    owner = cluster(1)
    left = host(owner, "g-a", 1)
    decision = decide(owner, *rest(owner), left)
    assert deleted(decision) == {"g-a-1"} and not slots(decision)
    assert not decide(owner, *rest(owner), kit.terminating(left)).intents
    assert len(slots(decide(owner, *rest(owner)))) == 1


def test_one_failed_or_terminating_host_takes_the_others_along() -> None:
    owner = cluster(2)
    well = [host(owner, "g-a", 0), host(owner, "g-a", 1)]
    failed = [host(owner, "g-b", 0, 1, phase="Failed"), host(owner, "g-b", 1, 1)]
    assert deleted(decide(owner, *rest(owner), *well, *failed)) == {"g-b-0", "g-b-1"}
    leaving = [kit.terminating(host(owner, "g-b", 0, 1)), host(owner, "g-b", 1, 1)]
    assert deleted(decide(owner, *rest(owner), *well, *leaving)) == {"g-b-1"}


def test_naming_one_host_removes_its_replica_and_no_other() -> None:
    owner = cluster(1, scaleStrategy={"workersToDelete": ["g-a-0", "h"]})
    pods = [host(owner, "g-a", 0), host(owner, "g-a", 1), host(owner, "g-b", 0, 1), host(owner, "g-b", 1, 1)]
    decision = decide(owner, *rest(owner), *pods)
    assert deleted(decision) == {"g-a-0", "g-a-1"} and not slots(decision)
    (first, _) = [intent for intent in decision.intents if isinstance(intent, Delete)]
    assert first.done is not None and first.done.reason == Reason.DELETED_WORKER_POD


def test_the_lowest_free_index_is_used_again() -> None:
    owner = cluster(2)
    ((labels, _),) = slots(decide(owner, *rest(owner), host(owner, "g-b", 0, 1), host(owner, "g-b", 1, 1))).values()
    assert labels[INDEX] == "0"


def test_the_replica_that_is_not_ready_goes_first() -> None:
    owner = cluster(1)
    ready = [host(owner, "g-b", 0, 1), host(owner, "g-b", 1, 1)]
    starting = [host(owner, "g-a", 0), host(owner, "g-a", 1, **kit.PENDING)]
    assert deleted(decide(owner, *rest(owner), *ready, *starting)) == {"g-a-0", "g-a-1"}


def test_another_number_of_hosts_replaces_what_is_there() -> None:
    owner = cluster(1, hosts=3)
    assert deleted(decide(owner, *rest(owner), host(owner, "g-a", 0), host(owner, "g-a", 1))) == {"g-a-0", "g-a-1"}
    assert deleted(decide(owner, *rest(owner), kit.worker(owner, "plain", "g", **kit.READY))) == {"plain"}


def test_a_replica_of_very_many_hosts_is_made_in_one_decision() -> None:
    owner = cluster(2, hosts=150)
    decision = decide(owner, *rest(owner))
    assert [len(i.slots) for i in decision.intents if isinstance(i, CreatePods)] == [100, 50]
    assert len(slots(decision)) == 1


def test_without_indexing_hosts_are_pods_like_others() -> None:
    owner = cluster(2)
    decision = decide(owner, *rest(owner), knobs=ClusterKnobs(multi_host_indexing=False))
    (create,) = [intent for intent in decision.intents if isinstance(intent, CreatePods)]
    assert [slot.labels for slot in create.slots] == [{}] * 4
