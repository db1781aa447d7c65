"""An event loop whose clock moves only when nothing is left to do, and on which single services can be frozen.

Every callback runs in the context it was scheduled in; a service is known by the context variable SERVICE. Frozen
services keep their callbacks until they thaw (like SIGSTOP: timers that came due meanwhile fire at once then).
Runs repeat exactly: tasks and futures hash by their number, so that sets of them have an order.
"""

import asyncio
import heapq
import itertools
import selectors
from collections import deque
from collections.abc import Coroutine
from contextvars import Context, ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

SERVICE: ContextVar[str] = ContextVar("SERVICE", default="")
"""The simulated process that the running code belongs to, "" = the simulator itself."""


class Stuck(Exception):
    """Everything waits for something that no timer will ever bring."""


class _NoSelector(selectors.BaseSelector):
    """Selects nothing: nothing real is waited for."""

    def __init__(self) -> None:
        self._files: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, fileobj if isinstance(fileobj, int) else fileobj.fileno(), events, data)
        self._files[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._files.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        return []

    def get_map(self) -> Any:
        return self._files


_numbers = itertools.count()


class _Future(asyncio.Future[Any]):
    def __init__(self, *, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop=loop)
        self._number = next(_numbers)

    def __hash__(self) -> int:
        return self._number


class _Task(asyncio.Task[Any]):
    def __init__(self, coro: Any, *, loop: asyncio.AbstractEventLoop, context: Context | None = None) -> None:
        self._number = next(_numbers)
        super().__init__(coro, loop=loop, context=context)

    def __hash__(self) -> int:
        return self._number


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is virtual seconds since the start of the run."""

    # What asyncio's own loop keeps under these names; `_run_once` below takes the place of its turn.
    _ready: deque[Any]
    _scheduled: list[Any]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__(_NoSelector())
        self._virtual = 0.0
        self._frozen: dict[str, list[Any]] = {}
        self.set_task_factory(lambda loop, coro, context=None: _Task(coro, loop=loop, context=context))

    def time(self) -> float:
        """Virtual seconds."""
        return self._virtual

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return _Future(loop=self)

    def _run_once(self) -> None:
        """One turn, in place of the loop's own: the same order of callbacks, but time jumps to the next timer."""
        ready, scheduled = self._ready, self._scheduled
        while scheduled and scheduled[0]._cancelled:
            heapq.heappop(scheduled)._scheduled = False
        if not ready and not self._stopping:
            if not scheduled:
                raise Stuck(f"at {self._virtual:.3f} s nothing is scheduled and the run has not ended")
            self._virtual = max(self._virtual, scheduled[0]._when)
        while scheduled and scheduled[0]._when <= self._virtual:
            handle = heapq.heappop(scheduled)
            handle._scheduled = False
            ready.append(handle)
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if self._frozen:
                kept = self._frozen.get(handle._context.get(SERVICE, ""))
                if kept is not None:
                    kept.append(handle)
                    continue
            handle._run()

    def freeze(self, service: str) -> None:
        """Stop `service` between two of its callbacks."""
        self._frozen.setdefault(service, [])

    def thaw(self, service: str) -> None:
        """Let `service` go on with all that came due while it was frozen, in order."""
        self._ready.extend(self._frozen.pop(service, []))

    def thaw_all(self) -> None:
        """Let everything go on."""
        for service in list(self._frozen):
            self.thaw(service)

    def is_frozen(self, service: str) -> bool:
        """Whether `service` is stopped at present."""
        return service in self._frozen


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on a new VirtualLoop to its end; raises what it raises, Stuck when it waits for ever."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
