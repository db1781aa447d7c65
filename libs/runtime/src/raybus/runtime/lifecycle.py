"""Run a service's parts until it is told to stop, and hand over before they end."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


class Stopped(Exception):
    """The service was told to stop while it still waited for something."""


async def unless_stopped(stop: asyncio.Event, waiting: Coroutine[Any, Any, T]) -> T:
    """The result of `waiting`. Raises Stopped when `stop` is set first, else what `waiting` raises."""
    task, stopping = asyncio.ensure_future(waiting), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise Stopped
    finally:
        stopping.cancel()
        task.cancel()


async def until_stopped(
    stop: asyncio.Event, parts: Iterable[Coroutine[Any, Any, Any]], hand_over: Callable[[], Awaitable[None]]
) -> None:
    """Run `parts` side by side; once `stop` is set, `hand_over`, then cancel them.

    Raises what the first part to fail raises (then the others are cancelled).
    """
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(part) for part in parts]
            await stop.wait()
            await hand_over()
            for task in tasks:
                task.cancel()
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from failures
