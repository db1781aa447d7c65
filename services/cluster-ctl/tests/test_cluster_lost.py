"""Pods that cannot die do not block their replacement; heads that fail at once back off (ADR 0125, 0126)."""

from typing import Any

import msgspec

from raybus.api.decision import CreatePods, Decision, Delete, Patch
from raybus.api.reasons import Reason
from raybus.api.times import Instant, format_time, parse_time
from raybus.api.view import Entry
from raybus.cluster_ctl.controller import controller
from raybus.cluster_ctl.settings import ClusterKnobs
from raybus.testkit import rayclusters as kit

CONTROLLER = controller(ClusterKnobs())
DUE = parse_time(kit.TERMINATING_SINCE)
BEFORE, AFTER = Instant(DUE + 59), Instant(DUE + 60)


def decide(owner: kit.Json, *children: kit.Json, now: Instant, deaths: tuple[float, ...] = ()) -> Decision:
    view = kit.view_of(CONTROLLER, owner, *children)
    graves = {
        ("pod", f"c-head-aaaa{number}"): Entry(value=None, gone=True, observed_at=Instant(now - ago))
        for number, ago in enumerate(deaths)
    }
    value = CONTROLLER.gather(msgspec.structs.replace(view, entries={**view.entries, **graves}))
    assert value is not None
    return CONTROLLER.decide(value, now, CONTROLLER.knobs)


def created(decision: Decision) -> int:
    return sum(len(intent.slots) for intent in decision.intents if isinstance(intent, CreatePods))


def test_a_lost_worker_is_replaced_and_a_slow_one_is_not() -> None:
    owner = kit.raycluster("c", kit.group("w", 1))
    rest = kit.head_service(owner), kit.head(owner, "h", **kit.READY)
    worker = kit.terminating(kit.worker(owner, "p", "w", **kit.READY))
    slow = decide(owner, *rest, worker, now=BEFORE)
    assert not slow.intents and slow.wake_at == AFTER
    lost = decide(owner, *rest, worker, now=AFTER)
    assert created(lost) == 1 and lost.wake_at is None
    assert Reason.POD_LOST in {why.reason for why in lost.because}


def test_a_lost_worker_is_not_too_many() -> None:
    owner = kit.raycluster("c", kit.group("w", 1))
    rest = kit.head_service(owner), kit.head(owner, "h", **kit.READY)
    worker, lost = kit.worker(owner, "q", "w", **kit.READY), kit.terminating(kit.worker(owner, "p", "w", **kit.READY))
    decision = decide(owner, *rest, worker, lost, now=AFTER)
    assert not decision.intents
    assert decision.status is not None and decision.status["state"] == "ready"


def test_a_lost_head_is_replaced_and_no_longer_served() -> None:
    owner = kit.raycluster("c")
    head = kit.terminating(kit.head(owner, "h", **kit.READY))
    head["metadata"]["labels"]["ray.io/identifier"] = "c-head"
    assert not decide(owner, kit.head_service(owner), head, now=BEFORE).intents
    decision = decide(owner, kit.head_service(owner), head, now=AFTER)
    (patch,) = [intent for intent in decision.intents if isinstance(intent, Patch)]
    assert created(decision) == 1 and patch.operations[0]["path"].endswith("ray.io~1identifier")


def test_a_head_with_state_outside_is_never_doubled() -> None:
    owner = kit.raycluster("c", spec={"gcsFaultToleranceOptions": {"redisAddress": "r:1"}})
    head = kit.terminating(kit.head(owner, "h", **kit.READY))
    decision = decide(owner, kit.head_service(owner), head, now=Instant(DUE + 9999))
    assert not decision.intents and decision.wake_at is None


def test_a_suspension_waits_for_lost_pods() -> None:
    conditions = [{"type": "RayClusterSuspending", "status": "True", "reason": "RayClusterSuspending"}]
    owner = kit.raycluster("c", spec={"suspend": True}, status={"conditions": conditions})
    decision = decide(owner, kit.head_service(owner), kit.terminating(kit.head(owner, "h")), now=AFTER)
    assert decision.status is not None and decision.status.get("state", "") == ""


def crashed(owner: kit.Json, now: Instant, lived: float, ago: float) -> kit.Json:
    ended = {"exitCode": 1, "finishedAt": format_time(Instant(now - ago))}
    statuses = [{"name": "ray", "state": {"terminated": ended}}]
    pod: dict[str, Any] = kit.head(owner, "h", phase="Failed", containerStatuses=statuses)
    pod["metadata"]["creationTimestamp"] = format_time(Instant(now - ago - lived))
    return pod


def replaced(now: Instant, lived: float, ago: float, *deaths: float) -> tuple[bool, Instant | None]:
    owner = kit.raycluster("c")
    decision = decide(owner, kit.head_service(owner), crashed(owner, now, lived, ago), now=now, deaths=deaths)
    return any(isinstance(intent, Delete) for intent in decision.intents), decision.wake_at


def test_the_first_failures_of_a_head_cost_nothing() -> None:
    assert replaced(DUE, 5, 1) == (True, None)
    assert replaced(DUE, 5, 1, 20) == (True, None)


def test_then_each_one_waits_twice_as_long() -> None:
    assert replaced(DUE, 5, 1, 20, 40) == (False, DUE + 9)
    assert replaced(DUE, 5, 1, 20, 40, 60) == (False, DUE + 19)
    assert replaced(DUE, 5, 10, 20, 40) == (True, None)
    assert replaced(DUE, 5, 1, *range(10, 100, 10)) == (False, DUE + 159)


def test_a_head_that_ran_for_a_while_or_failed_long_ago_is_no_crash_loop() -> None:
    assert replaced(DUE, 200, 1, 20, 40, 60) == (True, None)
    assert replaced(DUE, 5, 1, 700, 800, 900) == (True, None)
