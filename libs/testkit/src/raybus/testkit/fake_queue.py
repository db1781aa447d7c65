"""The durable pull consumer of the bus in memory: who waits gets the next message, and again what is not settled."""

import asyncio
import heapq
from collections import deque
from collections.abc import Callable
from contextvars import Context

from raybus.bus.port import Message
from raybus.testkit.fake_store import Stream


class Consumer:
    """Hands out messages of `stream()` that match `subject`. `ack_wait()`: seconds until one comes again.

    A message is handed to whoever waits at that moment, running or frozen; time runs from then on.
    """

    def __init__(self, stream: Callable[[], Stream], subject: str, ack_wait: Callable[[], float]) -> None:
        self._stream, self.subject, self._ack_wait = stream, subject, ack_wait
        self._ready: list[int] = []
        self._timers: dict[int, asyncio.TimerHandle] = {}
        self._waiting: deque[tuple[Callable[[], bool], asyncio.Future[Message]]] = deque()
        for message in stream().all(subject):
            heapq.heappush(self._ready, message.seq)

    def offer(self, seq: int) -> None:
        """A message that may be handed out."""
        heapq.heappush(self._ready, seq)
        self.match()

    async def next(self, reachable: Callable[[], bool]) -> Message:
        """The next message. `reachable`: whether the one who waits has a connection.

        Who stops waiting with a message in hand gives it back, as the adapter does; who has lost his connection
        (a crash is a cut first) cannot.
        """
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self._waiting.append((reachable, answer))
        self.match()
        try:
            return await answer
        except asyncio.CancelledError:
            if answer.done() and not answer.cancelled() and reachable():
                self.later(answer.result().seq, 0.0)
            raise

    def later(self, seq: int, delay: float) -> None:
        """Deliver `seq` again after `delay` seconds unless it is settled before."""
        self.settle(seq)
        loop = asyncio.get_running_loop()
        self._timers[seq] = loop.call_later(delay, self._again, seq, context=Context())

    def settle(self, seq: int) -> None:
        """Do not deliver `seq` again."""
        timer = self._timers.pop(seq, None)
        if timer is not None:
            timer.cancel()

    def forget(self) -> None:
        """The stream was made anew."""
        for seq in list(self._timers):
            self.settle(seq)
        self._ready.clear()

    def _again(self, seq: int) -> None:
        self._timers.pop(seq, None)
        self.offer(seq)

    def match(self) -> None:
        """Hand out what is ready to those who wait and can be reached."""
        while self._ready:
            waiter = self._waiter()
            if waiter is None:
                return
            seq = heapq.heappop(self._ready)
            message = self._stream().get(seq)
            if message is None or seq in self._timers:
                self._waiting.appendleft(waiter)
                continue
            self.later(seq, self._ack_wait())
            waiter[1].set_result(message)

    def _waiter(self) -> tuple[Callable[[], bool], asyncio.Future[Message]] | None:
        """The first who waits and can be reached; who is gone is forgotten."""
        for _ in range(len(self._waiting)):
            reachable, answer = self._waiting.popleft()
            if answer.done():
                continue
            if reachable():
                return reachable, answer
            self._waiting.append((reachable, answer))
        return None
