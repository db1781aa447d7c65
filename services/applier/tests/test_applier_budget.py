import asyncio

import pytest

from raybus.applier.budget import Budget, Turn, Urgency


async def order(budget: Budget, turns: dict[str, Turn]) -> list[str]:
    """In which order turns that wait while the only place is taken are served."""
    served: list[str] = []

    async def one(name: str, turn: Turn) -> None:
        async with budget.slot(turn):
            served.append(name)
            await asyncio.sleep(0)

    async with budget.slot(Turn(Urgency.REFRESH, "first", 0)):
        tasks = [asyncio.create_task(one(name, turn)) for name, turn in turns.items()]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    return served


async def test_the_most_urgent_class_goes_first() -> None:
    turns = {
        "event": Turn(Urgency.REFRESH, "a", 1),
        "create": Turn(Urgency.CREATE, "a", 1),
        "delete": Turn(Urgency.URGENT, "a", 9),
        "status": Turn(Urgency.STATUS, "a", 5),
    }
    assert await order(Budget(1), turns) == ["delete", "status", "create", "event"]


async def test_the_oldest_root_goes_first_within_a_class() -> None:
    turns = {str(age): Turn(Urgency.CREATE, "a", age) for age in (3, 1, 2)}
    assert await order(Budget(1), turns) == ["1", "2", "3"]


async def test_a_quiet_namespace_goes_before_one_that_has_requests_under_way() -> None:
    budget = Budget(2)
    async with budget.slot(Turn(Urgency.CREATE, "storm", 0)):
        turns = {"older": Turn(Urgency.CREATE, "storm", 1), "newer": Turn(Urgency.CREATE, "quiet", 7)}
        assert await order(budget, turns) == ["newer", "older"]


async def test_never_more_than_the_limit_and_all_places_come_back() -> None:
    budget, most = Budget(2), 0

    async def one(age: int) -> None:
        nonlocal most
        async with budget.slot(Turn(Urgency.CREATE, f"n{age % 4}", age)):
            most = max(most, budget.in_flight)
            await asyncio.sleep(0)

    await asyncio.gather(*(one(age) for age in range(50)))
    assert (most, budget.in_flight) == (2, 0)


async def test_a_cancelled_turn_takes_no_place() -> None:
    budget = Budget(1)
    async with budget.slot(Turn(Urgency.CREATE, "a", 0)):
        waiting = asyncio.create_task(order(budget, {}))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert budget.in_flight == 0
    assert await order(budget, {"a": Turn(Urgency.CREATE, "a", 0)}) == ["a"]


async def test_a_pause_holds_back_everybody_until_it_ends() -> None:
    budget, loop = Budget(4), asyncio.get_running_loop()
    begun = loop.time()
    budget.pause(0.05)
    async with budget.slot(Turn(Urgency.URGENT, "a", 0)):
        assert loop.time() - begun >= 0.05


async def test_a_root_with_many_children_leaves_half_of_the_places_to_others() -> None:
    budget, served = Budget(2), list[int]()
    under_way = {1: 0, 2: 0}

    async def one(age: int) -> None:
        async with budget.slot(Turn(Urgency.CREATE, "a", age)):
            served.append(age)
            under_way[age] += 1
            await asyncio.sleep(0.001)
            under_way[age] -= 1

    huge = [asyncio.create_task(one(1)) for _ in range(40)]
    await asyncio.sleep(0)
    assert under_way[1] == 2, "alone it may have all places"
    await asyncio.gather(*huge, *(one(2) for _ in range(8)))
    assert served.index(2) <= 4 and max(at for at, age in enumerate(served) if age == 2) < 30
