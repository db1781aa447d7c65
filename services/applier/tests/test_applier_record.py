"""The result message against other writers, and what never reaches the bus."""

import msgspec

from raybus.api import subjects
from raybus.api.decision import Ref
from raybus.api.kinds import BY_KIND
from raybus.api.messages import H_RV, Result
from raybus.api.times import Instant
from raybus.applier.echo import Echo
from raybus.applier.memory import RootMemory
from raybus.applier.record import Record
from raybus.applier.results import Attempt, merge, refuse
from raybus.kube.objects import parse_object
from raybus.kube.port import Rejected
from raybus.testkit.fake_bus import BusServer, FakeBus

KEY = ("cluster", "ns", "c")
SUBJECT = subjects.view(*KEY, subjects.RESULT, "applier")


def now() -> Instant:
    return Instant(1000.0)


def bus() -> FakeBus:
    return BusServer(now).connect()


async def write(record: Record, memory: RootMemory, intent: str) -> None:
    refusal = refuse(intent, Ref("Pod", "ns", "p"), "create", Rejected(403, "Forbidden", "no"), now())
    attempt = Attempt(current={intent}, refused=(refusal,))
    await record.update(KEY, memory, lambda base: merge(base, "u", attempt, None, now()), {})


async def test_refusals_that_another_applier_wrote_meanwhile_are_kept() -> None:
    shared = bus()
    mine, other = RootMemory(), RootMemory()
    record = Record(shared, now)
    await record.result(KEY, mine)
    await write(Record(shared, now), other, "theirs")
    await write(record, mine, "ours")
    message = await shared.last("VIEW", SUBJECT)
    assert message is not None
    refusals = msgspec.json.decode(message.data, type=Result).refusals
    assert [r.intent for r in refusals] == ["theirs", "ours"]


async def test_a_result_that_cannot_be_read_is_replaced() -> None:
    shared = bus()
    await shared.put("VIEW", SUBJECT, b"{", {})
    await write(Record(shared, now), RootMemory(), "ours")
    message = await shared.last("VIEW", SUBJECT)
    assert message is not None and len(msgspec.json.decode(message.data, type=Result).refusals) == 1


async def test_what_no_watch_selects_is_not_echoed() -> None:
    shared, secret = bus(), {"metadata": {"name": "s", "namespace": "ns", "uid": "u", "resourceVersion": "5"}}
    echo = Echo(shared, now)
    item = parse_object(msgspec.json.encode(secret), BY_KIND["Secret"])
    assert await echo.written(KEY, "Secret", item, {}, expect=0) == 0
    assert await echo.gone(KEY, Ref("Secret", "ns", "s"), "u", {}) == 0
    assert shared.server.streams["VIEW"].all(">") == []


async def test_an_expectation_that_proves_wrong_costs_a_look_and_revives_nothing() -> None:
    shared = bus()
    echo, subject = Echo(shared, now), subjects.view(*KEY, "raycluster", "c")

    async def write(version: str, expect: int | None) -> int:
        raw = {"metadata": {"name": "c", "namespace": "ns", "uid": "u", "resourceVersion": version}}
        item = parse_object(msgspec.json.encode(raw), BY_KIND["RayCluster"])
        return await echo.written(KEY, "RayCluster", item, {}, expect=expect)

    first = await write("5", 0)
    assert await write("6", first) == first + 1
    assert await write("8", first) == first + 2, "somebody else had written meanwhile"
    assert await write("7", first) == first + 2, "what is there is newer"
    last = await shared.last("VIEW", subject)
    assert last is not None and last.headers[H_RV] == "8"
