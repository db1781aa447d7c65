"""A cache that follows a bus and remembers what it went through, for tests against real and fake buses."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from raybus.bus.port import Bus, Loaded, Message, Reset, StreamName

PATIENCE = 20.0


async def until(condition: Callable[[], Awaitable[bool]], seconds: float = PATIENCE) -> None:
    """Ask `condition` until it holds; for what nobody announces. Raises TimeoutError."""
    async with asyncio.timeout(seconds):
        holds = await condition()
        while not holds:
            await asyncio.sleep(0.01)
            holds = await condition()


class Following:
    """Follows `subjects` until closed. `now`: last message of each subject; `resets`: the reasons so far."""

    def __init__(self, bus: Bus, stream: StreamName, subjects: Sequence[str]) -> None:
        self.now: dict[str, Message] = {}
        self.order: list[Message] = []
        self.loads = 0
        self.loaded = False
        self.resets: list[str] = []
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._follow(bus, stream, subjects))

    async def until(self, condition: Callable[[], bool], seconds: float = PATIENCE) -> None:
        """Wait for a condition on what was followed. Raises TimeoutError, or what following raised."""
        async with asyncio.timeout(seconds):
            while not condition():
                if self._task.done():
                    self._task.result()
                self._changed.clear()
                await self._changed.wait()

    async def until_loaded(self, times: int = 1) -> None:
        """Wait until the cache is complete for at least the `times`-th time."""
        await self.until(lambda: self.loaded and self.loads >= times)

    def close(self) -> None:
        """Stop following."""
        self._task.cancel()

    async def _follow(self, bus: Bus, stream: StreamName, subjects: Sequence[str]) -> None:
        async for item in bus.follow(stream, subjects):
            match item:
                case Reset(why):
                    self.now.clear()
                    self.loaded = False
                    self.resets.append(why)
                case Loaded():
                    self.loaded = True
                    self.loads += 1
                case message:
                    self.now[message.subject] = message
                    self.order.append(message)
            self._changed.set()
