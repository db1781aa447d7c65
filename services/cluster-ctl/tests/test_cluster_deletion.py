"""Emptying Redis behind a deleted cluster, and never waiting for ever (contract reconcile §5, ADR 0122)."""

from typing import Any

import pytest

from raybus.api.decision import Create, Decision, Delete
from raybus.api.messages import Refusal, Result, fingerprint
from raybus.api.reasons import Reason
from raybus.api.times import Instant, parse_time
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit

FINALIZER = "ray.io/gcs-ft-redis-cleanup-finalizer"
DELETED = parse_time(kit.TERMINATING_SINCE)
SOON, LATE = Instant(DELETED + 10), Instant(DELETED + 301)
REDIS = {"gcsFaultToleranceOptions": {"redisAddress": "redis:6379"}}


def decide(
    cluster: kit.Json,
    *children: kit.Json,
    now: Instant = SOON,
    knobs: ClusterKnobs | None = None,
    result: Result | None = None,
) -> Decision:
    control = controller(knobs or ClusterKnobs())
    value = control.gather(kit.view_of(control, cluster, *children, result=result))
    assert value is not None
    return control.decide(value, now, control.knobs)


def deleted(spec: kit.Json | None = None, **metadata: Any) -> kit.Json:
    return kit.terminating(
        kit.raycluster("c", spec=REDIS if spec is None else spec, finalizers=[FINALIZER], **metadata)
    )


def job(owner: kit.Json, end: str = "") -> kit.Json:
    pod = kit.head(owner, "c-redis-cleanup")
    labels = {"ray.io/cluster": "c", "ray.io/node-type": "redis-cleanup"}
    conditions = [{"type": end, "status": "True"}] if end else []
    meta = {**pod["metadata"], "labels": labels}
    return {"kind": "Job", "apiVersion": "batch/v1", "metadata": meta, "status": {"conditions": conditions}}


def reasons(decision: Decision) -> list[Reason]:
    return [note.reason for note in decision.notes]


def test_a_living_cluster_gets_the_finalizer_with_its_first_children() -> None:
    decision = decide(kit.raycluster("c", spec=REDIS))
    assert decision.finalizers == frozenset({FINALIZER}) and decision.intents


def test_without_redis_no_finalizer_is_spoken_of() -> None:
    assert decide(kit.raycluster("c")).finalizers is None
    assert decide(kit.raycluster("c", spec=REDIS), knobs=ClusterKnobs(redis_cleanup=False)).finalizers is None


def test_pods_go_first_and_the_job_waits_for_the_head_only() -> None:
    owner = deleted()
    head, worker = kit.head(owner, "h", **kit.READY), kit.worker(owner, "p", "w", **kit.READY)
    first = decide(owner, head, worker)
    assert {i.ref.name for i in first.intents if isinstance(i, Delete)} == {"h", "p"} and first.finalizers is None
    assert not decide(owner, kit.terminating(head), kit.terminating(worker)).intents
    (create,) = decide(owner, kit.terminating(worker)).intents
    assert isinstance(create, Create) and create.ref.name == "c-redis-cleanup"
    assert create.done is not None and create.done.reason == Reason.CREATED_REDIS_CLEANUP_JOB


def test_it_wakes_at_the_deadline() -> None:
    owner = deleted()
    assert decide(owner, job(owner)).wake_at == DELETED + 300
    short = deleted(annotations={"ray.io/gcs-ft-deletion-timeout": "60"})
    assert decide(short, job(short)).wake_at == DELETED + 60
    for text in ("0", "-5", "soon"):
        odd = deleted(annotations={"ray.io/gcs-ft-deletion-timeout": text})
        assert decide(odd, job(odd)).wake_at == DELETED + 300


@pytest.mark.parametrize("end", ["Complete", "Failed", "FailureTarget"])
def test_a_job_that_has_ended_lets_the_cluster_go_at_any_time(end: str) -> None:
    owner = deleted()
    for now in (SOON, LATE):
        decision = decide(owner, job(owner, end), now=now)
        assert decision.finalizers == frozenset() and not decision.notes and not decision.intents


def test_after_the_deadline_it_goes_although_the_head_lives_or_the_job_runs() -> None:
    owner = deleted()
    for children in ([job(owner)], [kit.terminating(kit.head(owner, "h"))], []):
        decision = decide(owner, *children, now=LATE)
        assert decision.finalizers == frozenset() and reasons(decision) == [Reason.FORCE_DELETED_STUCK_CLUSTER]


def test_what_no_longer_uses_redis_goes_at_once() -> None:
    for spec in ({}, {"gcsFaultToleranceOptions": {"backend": "rocksdb"}}):
        decision = decide(deleted(spec))
        assert decision.finalizers == frozenset() and not decision.notes
    assert decide(deleted(), knobs=ClusterKnobs(redis_cleanup=False)).finalizers == frozenset()


def test_an_invalid_spec_does_not_hold_it() -> None:
    invalid = deleted({**REDIS, "networkPolicy": {}})
    assert [i.ref.kind for i in decide(invalid).intents if isinstance(i, Create)] == ["Job"]
    broken = decide(deleted({**REDIS, "headGroupSpec": {"template": {"spec": {}}}}))
    assert broken.finalizers == frozenset() and reasons(broken) == [Reason.FORCE_DELETED_STUCK_CLUSTER]


def test_a_namespace_that_ends_does_not_hold_it() -> None:
    owner = deleted()
    (create,) = decide(owner).intents
    assert isinstance(create, Create)
    message = "jobs.batch is forbidden: unable to create new content in namespace x because it is being terminated"
    refusal = Refusal(
        intent=fingerprint(create),
        ref=create.ref,
        verb="create",
        code=403,
        reason="Forbidden",
        message=message,
        at=SOON,
        retry_at=LATE,
    )
    decision = decide(owner, result=Result(root_uid=kit.CLUSTER_UID, refusals=(refusal,)))
    assert decision.finalizers == frozenset() and reasons(decision) == [Reason.FORCE_DELETED_STUCK_CLUSTER]


def test_the_finalizers_of_others_are_not_ours_to_judge() -> None:
    owner = kit.terminating(kit.raycluster("c", spec=REDIS, finalizers=["kueue.x-k8s.io/managed"]))
    assert decide(owner).finalizers is None and not decide(owner).intents


def test_the_job_is_found_again_whatever_the_template_says() -> None:
    template = kit.template()
    template["metadata"] = {"labels": {"app.kubernetes.io/created-by": "me"}}
    (create,) = decide(deleted({**REDIS, "headGroupSpec": {"template": template}})).intents
    assert isinstance(create, Create)
    assert create.body["metadata"]["labels"]["app.kubernetes.io/created-by"] == "kuberay-operator"
    assert create.body["spec"]["template"]["metadata"]["labels"]["app.kubernetes.io/created-by"] == "me"
    (container,) = create.body["spec"]["template"]["spec"]["containers"]
    assert "livenessProbe" not in container and "REDIS_USERNAME" not in container["args"][0]
