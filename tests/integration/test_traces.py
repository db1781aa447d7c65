"""One RayJob is one trace through all services (ADR 0003), as a collector receives it."""

import hashlib
from collections.abc import Iterator

import pytest
from bare_world import BareWorld, Dashboard, ray_cluster, ray_job
from otlp import Receiver, Span
from stacks import OUTSIDE, running_stack

from raybus.dev.cluster import Cluster
from raybus.dev.stack import Stack

EDGES = {
    ("watcher publish", "job-ctl decide RayJob"),
    ("job-ctl decide RayJob", "applier apply RayJob"),
    ("applier apply RayJob", "applier POST rayclusters"),
    ("applier apply RayJob", "applier PUT status"),
    ("job-ctl decide RayJob", "prober ray submit"),
    ("job-ctl decide RayJob", "prober ray fact"),
    ("prober ray fact", "job-ctl decide RayJob"),
    ("watcher publish", "cluster-ctl decide RayCluster"),
    ("cluster-ctl decide RayCluster", "applier apply RayCluster"),
    ("applier apply RayCluster", "applier POST pods"),
    ("applier apply RayCluster", "applier POST services"),
}
"""Who causes whom, at least."""


@pytest.fixture(scope="module")
def receiver() -> Receiver:
    """Everything that the services of this module export."""
    return Receiver()


@pytest.fixture(scope="module")
def stack(bare_cluster: Cluster, receiver: Receiver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """All services, which export their traces."""
    with receiver.serve() as endpoint:
        settings = OUTSIDE | {"OTEL_EXPORTER_OTLP_ENDPOINT": endpoint}
        with running_stack(bare_cluster, tmp_path_factory.mktemp("stack") / "run", settings) as running:
            yield running
            assert running.ended() == []


def test_a_rayjob_with_its_cluster_and_pods_is_one_trace_from_watcher_to_kubernetes_and_ray(
    world: BareWorld, receiver: Receiver, dashboard_address: str
) -> None:
    board = Dashboard()
    with board.serve(dashboard_address) as port:
        world.apply(ray_job("traced", submissionMode="HTTPMode"))
        world.pods_ready(1, dashboard_address)
        cluster = world.wait("the cluster's name", lambda: world.status("rayjob", "traced").get("rayClusterName"))
        world.wait("the head service", lambda: world.get("service", f"{cluster}-head-svc"))
        world.endpoints(f"{cluster}-head-svc", dashboard_address, port)
        (job,) = world.wait("the job is submitted", lambda: list(board.jobs.values()) or None)
        job |= {"status": "SUCCEEDED", "message": "done", "end_time": 1_700_000_001_000}
        world.wait("Complete", lambda: world.status("rayjob", "traced").get("jobDeploymentStatus") == "Complete")
    trace = trace_of(world.list("rayjobs")[0]["metadata"]["uid"])
    try:
        world.wait("all edges", lambda: edges(receiver.trace(trace)) >= EDGES)
    except AssertionError:
        found = edges(receiver.trace(trace))
        raise AssertionError(f"missing: {sorted(EDGES - found)}; there are: {sorted(found)}") from None
    parts = ("view.job.", "view.cluster.", ".pod.", ".service.", ".raycluster.")

    def unheard() -> list[str]:
        about = [span.attributes.get("raybus.subject", "") for span in receiver.trace(trace)]
        return [part for part in parts if not any(part in subject for subject in about)]

    world.wait("something published about each part", lambda: not unheard())
    here = {
        span.trace for span in receiver.spans if f".{world.namespace}." in span.attributes.get("raybus.subject", "")
    }
    assert here == {trace}
    assert not receiver.refused


def test_each_generation_of_a_raycluster_of_its_own_is_a_trace(world: BareWorld, receiver: Receiver) -> None:
    world.apply(ray_cluster("own", workers=0))
    world.wait("the head", lambda: world.list("pods") or None)
    uid = world.list("rayclusters")[0]["metadata"]["uid"]
    seed = f"{uid}/1"
    world.wait(
        "its trace", lambda: ("applier apply RayCluster", "applier POST pods") in edges(receiver.trace(trace_of(seed)))
    )
    world.apply(ray_cluster("own", workers=1))
    world.wait("a second pod", lambda: len(world.list("pods")) == 2 or None)
    again = trace_of(f"{uid}/2")
    world.wait(
        "the next trace", lambda: ("applier apply RayCluster", "applier POST pods") in edges(receiver.trace(again))
    )


def trace_of(seed: str) -> str:
    """The trace id of a root (ADR 0003)."""
    return hashlib.blake2s(seed.encode(), digest_size=24).hexdigest()[:32]


def edges(spans: list[Span]) -> set[tuple[str, str]]:
    """(caller, callee) of all spans whose parent is known."""
    by_id = {span.id: span for span in spans}
    return {(label(by_id[span.parent]), label(span)) for span in spans if span.parent in by_id}


def label(span: Span) -> str:
    """Service and what it does, without the names of objects."""
    verb, _, path = span.name.partition(" /")
    words = path.split("/")
    kinds = ("pods", "services", "rayclusters", "rayjobs", "events")
    what = next((word for word in reversed(words) if word in (*kinds, "status")), "") if path else ""
    return f"{span.service.removeprefix('raybus-')} {verb} {what}".strip()
