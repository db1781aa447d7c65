"""Routes: which views an object lies in, and how they change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from raybus.api.routes import (
    L_CLUSTER,
    L_CRONJOB,
    L_NODE_TYPE,
    L_ORIGIN_KIND,
    L_ORIGIN_NAME,
    Index,
    Key,
    Route,
    Traits,
    traits,
    view_subject,
)


def key(kind: str, name: str) -> Key:
    return Key(kind, "ns", name)


def routes(*objects: Traits, of: Key) -> set[str]:
    index = Index()
    for each in objects:
        index.put(each)
    return {f"{route.controller}:{route.root}" for route in index.routes(of)}


def origin(kind: str, name: str, **more: str) -> dict[str, str]:
    return {L_ORIGIN_KIND: kind, L_ORIGIN_NAME: name, **more}


CLUSTER = traits(key("RayCluster", "c"), {})
OF_JOB = traits(key("RayCluster", "c"), origin("RayJob", "j"), ("RayJob", "j"))
OF_SERVICE = traits(key("RayCluster", "c"), {}, ("RayService", "s"))
HEAD = traits(key("Pod", "h"), {L_CLUSTER: "c", L_NODE_TYPE: "head"}, ("RayCluster", "c"))
HEAD_OF_JOB = traits(key("Pod", "h"), origin("RayJob", "j", **{L_CLUSTER: "c", L_NODE_TYPE: "head"}))
WORKER = traits(key("Pod", "w"), {L_CLUSTER: "c", L_NODE_TYPE: "worker"}, ("RayCluster", "c"))
SUBMITTER = traits(key("Pod", "x"), origin("RayJob", "j"), ("Job", "j"))
HEAD_SERVICE = traits(key("Service", "svc"), {L_CLUSTER: "c", L_NODE_TYPE: "head"}, ("RayCluster", "c"))
JOBS_SERVICE = traits(key("Service", "j-svc"), origin("RayJob", "j", **{L_NODE_TYPE: "head"}), ("RayJob", "j"))
SERVE_SERVICE = traits(key("Service", "s-svc"), origin("RayService", "s"), ("RayService", "s"))
CLUSTERS_SERVE_SERVICE = traits(key("Service", "c-serve"), origin("RayCluster", "c"), ("RayCluster", "c"))
BATCH_JOB = traits(key("Job", "j"), origin("RayJob", "j"), ("RayJob", "j"))
CLEANUP = traits(key("Job", "cl"), {L_CLUSTER: "c"}, ("RayCluster", "c"))
ROLE = traits(key("Role", "c"), {L_CLUSTER: "c"}, ("RayCluster", "c"))
FOREIGN_JOB = traits(key("Job", "f"), {}, ("CronJob", "f"))
JOB = traits(key("RayJob", "j"), {})
SELECTING = traits(key("RayJob", "k"), {}, claims=("c",))
OF_CRON = traits(key("RayJob", "cj"), {L_CRONJOB: "cron"}, ("RayCronJob", "cron"))
ORPHAN_OF_CRON = traits(key("RayJob", "cj"), {L_CRONJOB: "cron"})
CRON = traits(key("RayCronJob", "cron"), {})
SERVICE = traits(key("RayService", "s"), {})


@pytest.mark.parametrize(
    ("objects", "of", "expected"),
    [
        pytest.param([CLUSTER], CLUSTER, {"cluster:c"}, id="a cluster has its own view"),
        pytest.param([OF_JOB], OF_JOB, {"cluster:c", "job:j"}, id="a job's cluster is in the job's view"),
        pytest.param([OF_SERVICE], OF_SERVICE, {"cluster:c", "serve:s"}, id="a service's cluster in the service's"),
        pytest.param([CLUSTER, SELECTING], CLUSTER, {"cluster:c", "job:k"}, id="a selected cluster in the selector's"),
        pytest.param(
            [OF_JOB, SELECTING, traits(key("RayJob", "l"), {}, claims=("c", "d"))],
            OF_JOB,
            {"cluster:c", "job:j", "job:k", "job:l"},
            id="several jobs may use one cluster",
        ),
        pytest.param([WORKER, OF_JOB], WORKER, {"cluster:c"}, id="a worker is its cluster's alone"),
        pytest.param([HEAD], HEAD, {"cluster:c"}, id="a head before its cluster is known"),
        pytest.param(
            [HEAD, OF_JOB, SELECTING], HEAD, {"cluster:c", "job:j", "job:k"}, id="a head goes with its cluster"
        ),
        pytest.param([HEAD_OF_JOB], HEAD_OF_JOB, {"cluster:c"}, id="a head inherits labels, not routes"),
        pytest.param([HEAD_SERVICE, OF_SERVICE], HEAD_SERVICE, {"cluster:c", "serve:s"}, id="so does a head service"),
        pytest.param([SUBMITTER], SUBMITTER, {"job:j"}, id="a submitter's pod is its job's"),
        pytest.param([JOBS_SERVICE], JOBS_SERVICE, {"job:j"}, id="a job's head service"),
        pytest.param([SERVE_SERVICE], SERVE_SERVICE, {"serve:s"}, id="a service's serve service"),
        pytest.param([CLUSTERS_SERVE_SERVICE], CLUSTERS_SERVE_SERVICE, {"cluster:c"}, id="a cluster's serve service"),
        pytest.param([BATCH_JOB], BATCH_JOB, {"job:j"}, id="a submitter's Job"),
        pytest.param([CLEANUP], CLEANUP, {"cluster:c"}, id="a cleanup Job"),
        pytest.param([ROLE], ROLE, {"cluster:c"}, id="a cluster's Role"),
        pytest.param([FOREIGN_JOB], FOREIGN_JOB, set(), id="a Job of someone else"),
        pytest.param([JOB], JOB, {"job:j"}, id="a job"),
        pytest.param([OF_CRON], OF_CRON, {"job:cj", "cron:cron"}, id="a job of a cron job"),
        pytest.param([ORPHAN_OF_CRON], ORPHAN_OF_CRON, {"job:cj", "cron:cron"}, id="also by its label alone"),
        pytest.param([CRON], CRON, {"cron:cron"}, id="a cron job"),
        pytest.param([SERVICE], SERVICE, {"serve:s"}, id="a service"),
    ],
)
def test_routes(objects: list[Traits], of: Traits, expected: set[str]) -> None:
    assert routes(*objects, of=of.key) == expected
    assert routes(*reversed(objects), of=of.key) == expected, "the order of arrival must not matter"


def test_another_namespace_is_another_cluster() -> None:
    elsewhere = traits(Key("RayJob", "other", "k"), {}, claims=("c",))
    assert routes(CLUSTER, elsewhere, of=CLUSTER.key) == {"cluster:c"}


def test_a_change_names_the_objects_that_go_with_it() -> None:
    index = Index()
    for each in (CLUSTER, HEAD, HEAD_SERVICE, WORKER):
        assert index.put(each) == set()
    members = {CLUSTER.key, HEAD.key, HEAD_SERVICE.key}
    assert index.put(SELECTING) == members
    assert index.put(SELECTING) == set()
    assert index.put(traits(SELECTING.key, {}, claims=("d",))) == members
    assert index.routes(HEAD.key) == {Route("cluster", "ns", "c")}
    index.put(SELECTING)
    assert index.drop(SELECTING.key) == members
    assert index.drop(SELECTING.key) == set()
    assert index.put(OF_JOB) == members - {CLUSTER.key}
    assert index.drop(CLUSTER.key) == members - {CLUSTER.key}
    assert index.routes(CLUSTER.key) == frozenset()


def test_the_subject_of_an_object_in_a_view() -> None:
    subject = view_subject(Route("job", "ns", "j"), Key("Pod", "ns", "h.1"))
    assert subject.startswith("view.job.") and subject.endswith(".ns.j.pod.h=2e1")


NAMES = st.sampled_from(["a", "b"])
OWNERS = st.one_of(st.none(), st.tuples(st.sampled_from(["RayJob", "RayService", "RayCluster", "RayCronJob"]), NAMES))
LABELS = st.fixed_dictionaries(
    {},
    optional={
        L_CLUSTER: NAMES,
        L_NODE_TYPE: st.sampled_from(["head", "worker"]),
        L_ORIGIN_KIND: st.sampled_from(["RayJob", "RayService"]),
        L_ORIGIN_NAME: NAMES,
        L_CRONJOB: NAMES,
    },
)
KINDS = st.sampled_from(["RayCluster", "RayJob", "RayService", "RayCronJob", "Pod", "Service", "Job"])
OBJECTS = st.builds(
    lambda kind, name, labels, owner, claims: traits(
        key(kind, name), labels, owner, claims if kind == "RayJob" else ()
    ),
    KINDS,
    NAMES,
    LABELS,
    OWNERS,
    st.lists(NAMES, max_size=2, unique=True).map(tuple),
)


@given(st.lists(st.tuples(st.booleans(), OBJECTS), max_size=30))
def test_an_index_kept_change_by_change_equals_one_built_at_once(changes: list[tuple[bool, Traits]]) -> None:
    index, present = Index(), dict[Key, Traits]()
    known: dict[Key, frozenset[Route]] = {}
    for put, each in changes:
        affected = index.put(each) if put else index.drop(each.key)
        if put:
            present[each.key] = each
        else:
            present.pop(each.key, None)
        for moved in affected | {each.key}:
            known[moved] = index.routes(moved)
    fresh = Index()
    for each in present.values():
        fresh.put(each)
    for each in present.values():
        assert index.routes(each.key) == fresh.routes(each.key) == known[each.key]
