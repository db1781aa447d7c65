"""Actions: at most once per id and head, whatever happens to the prober."""

import asyncio

from prober_world import DEAD, World, head, probe, run

from raybus.api.decision import StopJob, SubmitJob
from raybus.prober.ports import Answer
from raybus.testkit.virtual_time import VirtualLoop


def submit(uid: str = "h1") -> SubmitJob:
    return SubmitJob(id="submit", head=head(uid), job_id="j", request={"entrypoint": "x", "submission_id": "j"})


DONE = Answer(outcome="ok", final=True)


def test_a_submission_happens_once_per_head_also_after_a_restart() -> None:
    async def scenario(world: World) -> None:
        world.rays.answers["h1"] = world.rays.answers["h2"] = DONE
        await world.start()
        await world.ask(submit())
        await asyncio.sleep(10)
        assert world.fact("submit").outcome == "ok"
        await world.stops.pop()()
        await world.start("b")
        await asyncio.sleep(10)
        assert len(world.rays.made("submit")) == 1
        await world.ask(submit("h2"))
        await asyncio.sleep(10)
        assert len(world.rays.made("submit")) == 2 and world.fact("submit").head == "h2"

    run(scenario)


def test_a_submission_without_an_answer_is_tried_again_and_a_refused_one_is_not() -> None:
    async def scenario(world: World) -> None:
        world.rays.answers["h1"] = DEAD
        await world.start()
        await world.ask(submit())
        await asyncio.sleep(4)
        assert len(world.rays.made("submit")) > 1 and world.fact("submit").outcome == "unreachable"
        world.rays.answers["h1"] = Answer(outcome="refused", text="bad runtime_env", final=True)
        await asyncio.sleep(20)
        made = len(world.rays.made("submit"))
        await asyncio.sleep(20)
        assert len(world.rays.made("submit")) == made and world.fact("submit").text == "bad runtime_env"

    run(scenario)


def test_a_stop_does_not_wait_for_a_probe_that_hangs() -> None:
    async def scenario(world: World) -> None:
        world.rays.delay["h1"] = 2.0
        await world.start()
        await world.ask(probe())
        await asyncio.sleep(0.5)
        await world.ask(probe(), StopJob(id="stop", head=head(), job_id="j"))
        await asyncio.sleep(0.1)
        assert len(world.rays.made("stop")) == 1

    run(scenario)


def test_a_submission_whose_outcome_is_unknown_is_tried_again_after_a_restart() -> None:
    async def scenario(world: World) -> None:
        world.rays.answers["h1"] = DEAD
        await world.start()
        await world.ask(submit())
        await asyncio.sleep(4)
        await world.stops.pop()()
        world.rays.answers["h1"] = DONE
        await world.start("b")
        await asyncio.sleep(3)
        assert world.fact("submit").outcome == "ok"

    run(scenario)


def test_a_frozen_replica_submits_nothing_when_it_wakes_up() -> None:
    async def scenario(world: World) -> None:
        world.rays.answers["h1"] = DEAD
        await world.start("a")
        await world.ask(submit())
        await asyncio.sleep(20)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.freeze("a")
        await world.start("b")
        world.rays.answers["h1"] = DONE
        await asyncio.sleep(10)
        made = len(world.rays.made("submit"))
        loop.thaw("a")
        await asyncio.sleep(10)
        assert world.fact("submit").outcome == "ok" and len(world.rays.made("submit")) == made

    run(scenario)
