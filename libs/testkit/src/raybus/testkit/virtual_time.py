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
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

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


class _Numbered:
    """Hashes by a number that is given when it is first asked for."""

    _number = 0

    def __hash__(self) -> int:
        if not self._number:
            loop: VirtualLoop = self.get_loop()  # type: ignore[attr-defined]  # of the future that this is mixed into
            self._number = next(loop.numbers)
        return self._number


class _Future(_Numbered, asyncio.Future[Any]):
    pass


class _Task(_Numbered, asyncio.Task[Any]):
    pass


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is virtual seconds since the start of the run."""

    # What asyncio's own loop keeps under these names; `_run_once` below takes the place of its turn.
    _ready: deque[Any]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__(_NoSelector())
        self._virtual = 0.0
        self._timers: list[tuple[float, int, Any]] = []
        self.numbers = itertools.count(1)
        self._frozen: dict[str, list[Any]] = {}
        self.set_task_factory(lambda loop, coro, context=None: _Task(coro, loop=loop, context=context))

    def time(self) -> float:
        """Virtual seconds."""
        return self._virtual

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return _Future(loop=self)

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        """As the loop's own, without its checks."""
        handle = asyncio.Handle(callback, args, self, context)
        self._ready.append(handle)
        return handle

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """As the loop's own; timers of the same instant run in the order in which they were set."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._timers, (when, next(self.numbers), handle))
        return handle

    def _run_once(self) -> None:
        """One turn, in place of the loop's own: the same order of callbacks, but time jumps to the next timer."""
        ready, timers, frozen = self._ready, self._timers, self._frozen
        while timers and timers[0][2]._cancelled:
            heapq.heappop(timers)
        if not ready and not self._stopping:
            if not timers:
                raise Stuck(f"at {self._virtual:.3f} s nothing is scheduled and the run has not ended")
            self._virtual = max(self._virtual, timers[0][0])
        while timers and timers[0][0] <= self._virtual:
            ready.append(heapq.heappop(timers)[2])
        for _ in range(len(ready)):
            handle = ready.popleft()
            if handle._cancelled:
                continue
            if frozen:
                kept = frozen.get(handle._context.get(SERVICE, ""))
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
