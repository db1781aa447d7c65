import asyncio

import pytest

from raybus.testkit.virtual_time import SERVICE, Stuck, VirtualLoop, run_virtual


def virtual_loop() -> VirtualLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    return loop


def test_time_jumps_to_the_next_timer() -> None:
    async def main() -> float:
        await asyncio.sleep(3600)
        return virtual_loop().time()

    assert run_virtual(main()) == 3600


def test_waiting_for_nothing_is_said() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(Stuck):
        run_virtual(main())


def test_a_frozen_service_runs_nothing_and_catches_up_when_it_thaws() -> None:
    async def main() -> list[float]:
        loop, beats = virtual_loop(), list[float]()

        async def beat() -> None:
            while True:
                await asyncio.sleep(1)
                beats.append(loop.time())

        token = SERVICE.set("a")
        task = asyncio.create_task(beat())
        SERVICE.reset(token)
        await asyncio.sleep(2.5)
        loop.freeze("a")
        await asyncio.sleep(10)
        assert loop.is_frozen("a") and beats == [1, 2]
        loop.thaw("a")
        await asyncio.sleep(1.1)
        task.cancel()
        return beats

    assert run_virtual(main()) == [1, 2, 12.5, 13.5]


def test_sets_of_tasks_have_the_same_order_every_time() -> None:
    async def main() -> list[str]:
        order: list[str] = []

        async def die(name: str) -> None:
            try:
                await asyncio.sleep(1)
            finally:
                order.append(name)

        with pytest.raises(ExceptionGroup):
            async with asyncio.TaskGroup() as group:
                for number in range(9):
                    group.create_task(die(str(number)))
                await asyncio.sleep(0)
                raise ValueError
        return order

    assert run_virtual(main()) == run_virtual(main()) == list("012345678")
