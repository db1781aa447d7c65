"""Probes: asks in, facts out."""

import asyncio
from itertools import pairwise

import msgspec
from prober_world import DEAD, NS, RUNNING, World, head, probe, run

from raybus.api import subjects
from raybus.api.messages import H_EPOCH, H_GONE, H_SCHEMA, SCHEMA, Epoch, Fact, JobFact
from raybus.prober.heads import Heads
from raybus.prober.ports import Answer


def test_a_change_is_published_at_once_and_a_confirmation_when_it_is_wanted() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe(fresh=3.0))
        await asyncio.sleep(0.1)
        first = world.fact()
        assert (first.outcome, first.head, first.job) == ("ok", "h1", JobFact(status="RUNNING"))
        assert first.begun < first.at
        await asyncio.sleep(2.5)
        assert world.fact() == first
        await asyncio.sleep(1.5)
        assert world.fact().begun - first.begun >= 2.7
        world.rays.answers["h1"] = Answer(outcome="ok", job=JobFact(status="RUNNING", message="is running"))
        await asyncio.sleep(1.1)
        world.rays.answers["h1"] = Answer(outcome="ok", job=JobFact(status="SUCCEEDED"))
        await asyncio.sleep(1.1)
        assert world.fact().job == JobFact(status="SUCCEEDED")
        assert world.told() == ["job j is RUNNING", "job j is SUCCEEDED"]

    run(scenario)


def test_a_fresher_wish_is_answered_at_once() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe(fresh=30.0))
        await asyncio.sleep(0.5)
        asked = world.now()
        await world.ask(probe(fresh=1.0))
        await asyncio.sleep(1.1)
        assert world.fact().begun >= asked

    run(scenario)


def test_heads_that_never_answer_delay_nobody_else() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        for number in range(30):
            uid, name = f"dead{number}", f"d{number}"
            world.rays.answers[uid], world.rays.delay[uid] = DEAD, 2.0
            await world.lead(name)
            await world.ask(probe(uid), name=name)
        await asyncio.sleep(30)
        await world.lead()
        asked = world.now()
        await world.ask(probe("healthy"))
        await asyncio.sleep(0.5)
        assert world.fact().outcome == "ok" and world.fact().at - asked < 0.5
        assert world.fact(name="d3").outcome == "unreachable"

    run(scenario)


def test_a_dead_head_is_called_ever_more_rarely_but_at_least_every_few_seconds() -> None:
    async def scenario(world: World) -> None:
        world.rays.answers["h1"] = DEAD
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(60)
        calls = world.rays.made("job")
        gaps = [after - before for before, after in pairwise(calls)]
        assert gaps[0] < 0.6 and 4.9 < max(gaps) < 5.1 and gaps[-1] > 4.9
        assert world.told() == ["probe job j: no answer"]
        world.rays.answers["h1"] = RUNNING
        await asyncio.sleep(5.1)
        assert world.fact().outcome == "ok"

    run(scenario)


def test_an_ask_that_goes_away_leaves_a_tombstone_and_no_more_calls() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(1)
        await world.ask()
        await asyncio.sleep(1)
        message, calls = world.message(), len(world.rays.calls)
        assert message is not None and H_GONE in message.headers and message.data == b""
        assert world.heads.askers == 0
        await asyncio.sleep(10)
        assert len(world.rays.calls) == calls

    run(scenario)


def test_an_ask_of_a_former_owner_changes_nothing() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(1)
        await world.ask(epoch=Epoch(world.epoch.created, world.epoch.revision - 1))
        await world.ask(epoch=Epoch(world.epoch.created, world.epoch.revision + 5))
        await asyncio.sleep(10)
        message = world.message()
        assert message is not None and H_GONE not in message.headers
        assert world.now() - world.fact().at < 4

    run(scenario)


def test_an_unreadable_ask_costs_nothing_but_itself() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe())
        subject = subjects.ask("job", NS, "r")
        await world.bus.put("ASK", subject, b"{", {H_EPOCH: str(world.epoch), H_SCHEMA: SCHEMA})
        await world.bus.put("ASK", subject, b"{}", {})
        await asyncio.sleep(10)
        assert world.now() - world.fact().at < 4

    run(scenario)


def test_an_ask_of_a_later_release_is_left_alone_and_readiness_says_so() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe())
        subject = subjects.ask("job", NS, "r")
        await world.bus.put("ASK", subject, b"{}", {H_EPOCH: str(world.epoch), H_SCHEMA: "2.0"})
        await asyncio.sleep(10)
        assert world.now() - world.fact().at < 4
        assert "wait for a later release of prober" in world.behind.problem()
        await world.ask(probe())
        await asyncio.sleep(1)
        assert world.behind.problem() == ""

    run(scenario)


def test_a_newer_fact_of_another_replica_stays() -> None:
    async def scenario(world: World) -> None:
        world.rays.delay["h1"] = 5.0
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(2)
        newer = Fact(id="probe", head="h1", begun=world.now(), at=world.now(), outcome="missing")
        subject = subjects.view("job", NS, "r", subjects.FACT, "probe")
        await world.bus.put("VIEW", subject, msgspec.json.encode(newer), {H_SCHEMA: SCHEMA})
        await asyncio.sleep(4)
        assert world.fact() == newer

    run(scenario)


def test_a_clock_that_is_set_back_leaves_no_fact_of_the_future() -> None:
    async def scenario(world: World) -> None:
        world.ahead = 20.0
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(2)
        assert world.fact().begun > 1000.0 + 20.0
        world.ahead = 0.0
        await asyncio.sleep(1.5)
        assert world.now() - 2 < world.fact().begun <= world.now()

    run(scenario)


def test_a_replica_that_takes_over_goes_on_where_the_other_ended() -> None:
    async def scenario(world: World) -> None:
        first = await world.start("a")
        await world.ask(probe())
        await asyncio.sleep(1)
        await world.start("b")
        await first.leave()
        await world.stops.pop(0)()
        await asyncio.sleep(5)
        assert world.now() - world.fact().at < 4

    run(scenario)


def test_after_a_wiped_bus_only_what_is_asked_again_is_probed() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(1)
        world.server.wipe()
        await asyncio.sleep(5)
        calls = len(world.rays.calls)
        await asyncio.sleep(5)
        assert len(world.rays.calls) == calls and world.message() is None
        await world.lead()
        await world.ask(probe())
        await asyncio.sleep(1)
        assert world.fact().outcome == "ok"

    run(scenario)


def test_the_same_ask_again_begins_nothing_anew() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        for _ in range(20):
            await world.ask(probe())
            await asyncio.sleep(0.1)
        assert len(world.rays.made("job")) <= 3

    run(scenario)


def test_an_ask_that_vanished_while_nobody_listened_is_dropped() -> None:
    async def scenario(world: World) -> None:
        await world.start()
        await world.ask(probe(), name="r")
        await asyncio.sleep(1)
        stream = world.server.streams["ASK"]
        stream.remove(stream.last_seq(subjects.ask("job", NS, "r")))
        world.last_bus.reset("a gap")
        await asyncio.sleep(2)
        message, calls = world.message(), len(world.rays.calls)
        assert message is not None and H_GONE in message.headers
        await asyncio.sleep(10)
        assert len(world.rays.calls) == calls

    run(scenario)


def test_heads_are_forgotten_when_nobody_asks_them() -> None:
    heads = Heads(8)
    first, second = heads.join(head()), heads.join(head())
    assert first is second and heads.askers == 2
    first.failures = 3
    heads.leave(head())
    heads.leave(head())
    assert heads.join(head()).failures == 0 and heads.askers == 1
