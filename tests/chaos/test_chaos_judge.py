"""A judge that finds nothing proves nothing: planted faults, one for each thing that it must find."""

import random
from pathlib import Path

import audit
import faults
import judge
import leases
import pytest
from history import Cluster, Held, History, Job, Pod, Seen, Service
from imitation import Ray, Run, plan, read_plan
from leases import Lease, Outage

from raybus.api.names import partition_of
from raybus.dev.stack import SERVICES

CLUSTER = Cluster("u", "", False, {"g": 1}, True)


def pod(uid: str, *, group: str = "g", head: bool = False, usable: bool = True) -> Pod:
    return Pod(uid, "u", "c", "" if head else group, head, usable, True)


def story(*steps: tuple[str, str, Held | None], apart: float = 1.0) -> list[Seen]:
    """Revisions `apart` seconds apart."""
    return [Seen(n, 1000 + n * apart, kind, name, held) for n, (kind, name, held) in enumerate(steps)]


def test_a_second_worker_or_head_is_found() -> None:
    base = ("raycluster", "c", CLUSTER)
    assert len(list(judge.doubled_pods(story(base, ("pod", "a", pod("1")), ("pod", "b", pod("2")))))) == 1
    heads = story(base, ("pod", "a", pod("1", head=True)), ("pod", "b", pod("2", head=True)))
    assert "2 heads of c, wanted are 1" in next(judge.doubled_pods(heads))


@pytest.mark.parametrize("first", [pod("1", usable=False), None])
def test_a_replacement_is_no_double(first: Pod | None) -> None:
    steps = story(("raycluster", "c", CLUSTER), ("pod", "a", pod("1")), ("pod", "a", first), ("pod", "b", pod("2")))
    assert not list(judge.doubled_pods(steps))


def test_a_wish_that_is_long_past_counts_no_more() -> None:
    two = CLUSTER._replace(desired={"g": 2})
    steps = (("raycluster", "c", two), ("pod", "a", pod("1")), ("raycluster", "c", CLUSTER), ("pod", "b", pod("2")))
    assert not list(judge.doubled_pods(story(*steps)))
    assert list(judge.doubled_pods([*story(*steps[:3]), Seen(9, 1002 + judge.SLACK + 1, *steps[3])]))


def test_a_pod_of_a_deleted_cluster_is_found_after_a_while() -> None:
    steps = (("raycluster", "c", CLUSTER), ("raycluster", "c", None), ("pod", "a", pod("1")))
    assert not list(judge.doubled_pods(story(*steps)))
    assert list(judge.doubled_pods(story(*steps, apart=judge.SLACK + 1)))


def test_second_children_are_found() -> None:
    services = story(*(("service", name, Service(name, "u", True)) for name in "ab"))
    assert len(list(judge.doubled_children(services))) == 1
    clusters = story(*(("raycluster", name, CLUSTER._replace(uid=name, owner="j")) for name in "ab"))
    assert len(list(judge.doubled_children(clusters))) == 1
    gone = CLUSTER._replace(uid="a", owner="j", deleting=True)
    retried = story(("raycluster", "a", gone), ("raycluster", "b", CLUSTER._replace(uid="b", owner="j")))
    assert not list(judge.doubled_children(retried))


def run(submission: str, began: float, ends: float, outcome: str = "SUCCEEDED") -> Run:
    return Run("j", submission, "head", began, ends, outcome)


def test_a_submission_too_many_is_found() -> None:
    assert list(judge.doubled_submissions([run("a", 0, 9), run("b", 5, 9)], {"j": 2}))
    assert list(judge.doubled_submissions([run("a", 0, 9), run("a", 10, 19)], {"j": 2}))
    failed = [run("a", 0, 9, "FAILED"), run("b", 10, 19)]
    assert not list(judge.doubled_submissions(failed, {"j": 2}))
    assert list(judge.doubled_submissions(failed, {"j": 1}))


@pytest.mark.parametrize(
    ("phase", "ray", "wrong"),
    [("Complete", "SUCCEEDED", False), ("Failed", "FAILED", True), ("Failed", "SUCCEEDED", True)],
)
def test_a_verdict_is_rays(phase: str, ray: str, wrong: bool) -> None:
    job = Job("u", False, "", 1, phase, ray, "a", "c")
    assert bool(list(judge.wrong_verdicts(story(("rayjob", "j", job)), [run("a", 0, 999)]))) is wrong


def test_a_verdict_before_the_end_or_taken_back_is_found() -> None:
    job = Job("u", False, "", 1, "Complete", "SUCCEEDED", "a", "c")
    assert list(judge.wrong_verdicts(story(("rayjob", "j", job)), [run("a", 0, 1001)]))
    back = story(("rayjob", "j", job), ("rayjob", "j", job._replace(phase="Running")))
    assert len(list(judge.wrong_verdicts(back, [run("a", 0, 999)]))) == 1


LEASES = [Lease(10, "applier", n, "applier-11") for n in range(16)] + [
    Lease(20, "applier", n, "applier-1-22") for n in range(16)
]


def test_a_write_after_the_thaw_without_the_lease_is_found() -> None:
    write = judge.Write(30.5, "applier", "update", "rayclusters/status", "c", 200, ("c",))
    late = write._replace(verb="create", resource="pods", name="p")
    thaws = [judge.Thaw("applier", 30)]

    def found(*writes: judge.Write) -> audit.Stale:
        return audit.stale_writes(writes, thaws, LEASES, "ns", [Seen(1, 33, "pod", "p", None)])

    assert len(found(write).applied) == 1
    assert found(write._replace(code=409)) == found(write._replace(by="applier-1")) == ([], [])
    assert found(write._replace(at=36)) == ([], [])
    assert found(late) == ([late], [])
    assert len(found(late._replace(name="q")).applied) == 1


def test_the_wait_for_a_new_owner() -> None:
    waited = leases.waits(LEASES, [Outage("applier", 18.5)], [])
    assert len(waited) == 16
    assert leases.p99([seconds for *_, seconds in waited]) == pytest.approx(1.5)
    assert not leases.waits(LEASES, [Outage("applier", 18.5)], [(19, 19.5)])


def test_the_audit_log_names_writer_and_root(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_text(
        '{"objectRef":{"resource":"pods","namespace":"ns"},"verb":"create","userAgent":"applier-1",'
        '"requestReceivedTimestamp":"2026-01-01T00:00:00.500000Z","responseStatus":{"code":201},'
        '"requestObject":{"metadata":{"name":"p","ownerReferences":[{"name":"c"}]}}}\n'
        '{"objectRef":{"resource":"pods","namespace":"other","name":"x"}}\n'
    )
    (write,) = audit.read(log, "ns", {})
    assert (write.by, write.name, write.roots, write.applied) == ("applier-1", "p", ("p", "c"), True)


def test_partitions_are_those_of_the_design() -> None:
    assert [judge.partition("ns", f"c{n}") for n in range(20)] == [partition_of("ns", f"c{n}") for n in range(20)]


@pytest.mark.parametrize("servers", [1, 3])
def test_a_whole_plan_has_enough_of_everything(servers: int) -> None:
    lanes = faults.plan(random.Random(1), servers, 60.0)
    kinds = [fault.kind for lane in lanes for fault in lane]
    assert len(kinds) >= 60
    assert all(kinds.count(kind) >= 3 for kind in kinds if kind != "bus-server-away")
    for service in SERVICES:
        assert sum(fault.target == service for fault in lanes[0]) == 6
    assert set(kinds) <= faults.KINDS.keys()


def test_ray_forgets_with_its_head() -> None:
    held = History("", "ns")
    held.now = {("raycluster", "c"): CLUSTER, ("pod", "h"): pod("1", head=True)}
    ray = Ray(held)
    body = f'{{"submission_id": "s", "entrypoint": "{plan("j", ["SUCCEEDED"], 60)}"}}'.encode()
    assert ray.answer("c-head-svc", "POST", "/api/jobs/", body)[0] == 200
    assert ray.answer("c-head-svc", "POST", "/api/jobs/", body)[0] == 500
    assert ray.answer("c-head-svc", "GET", "/api/jobs/s", b"")[0] == 200
    held.now["pod", "h"] = pod("2", head=True)
    assert ray.answer("c-head-svc", "GET", "/api/jobs/s", b"")[0] == 404
    del held.now["pod", "h"]
    assert ray.answer("c-head-svc", "GET", "/api/jobs/s", b"")[0] == 503


def test_a_plan_can_be_read() -> None:
    assert read_plan(plan("j1", ["FAILED", "SUCCEEDED"], 2.5)) == ("j1", ["FAILED", "SUCCEEDED"], 2.5)
