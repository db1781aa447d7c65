"""An event loop whose clock moves only when nothing is left to do, and on which single services can be frozen.

Every callback runs in the context it was scheduled in; a service is known by the context variable SERVICE. Frozen
services keep their callbacks until they thaw (like SIGSTOP: timers that came due meanwhile fire at once then).
"""

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

SERVICE: ContextVar[str] = ContextVar("SERVICE", default="")
"""The simulated process that the running code belongs to, "" = the simulator itself."""


class Stuck(Exception):
    """Everything waits for something that no timer will ever bring."""


class _Selector(selectors.BaseSelector):
    """Selects nothing: instead of waiting it tells the loop how long it would have waited."""

    def __init__(self) -> None:
        self.files: dict[Any, selectors.SelectorKey] = {}
        self.waited: Callable[[float | None], None] = lambda _: None

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, fileobj if isinstance(fileobj, int) else fileobj.fileno(), events, data)
        self.files[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self.files.pop(fileobj)

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self.waited(timeout)
        return []

    def get_map(self) -> Any:
        return self.files


class VirtualLoop(asyncio.SelectorEventLoop):
    """`time()` is virtual seconds since the start of the run."""

    def __init__(self) -> None:
        selector = _Selector()
        super().__init__(selector)
        selector.waited = self._advance
        self._virtual = 0.0
        self._frozen: dict[str, list[tuple[Callable[..., Any], tuple[Any, ...], Context]]] = {}

    def time(self) -> float:
        """Virtual seconds."""
        return self._virtual

    def _advance(self, timeout: float | None) -> None:
        if timeout is None:
            raise Stuck(f"at {self._virtual:.3f} s nothing is scheduled and the run has not ended")
        if timeout > 0:
            self._virtual += timeout

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        context = context or copy_context()
        return super().call_soon(self._run_or_keep, callback, args, context, context=context)

    def call_at(
        self, when: float, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        context = context or copy_context()
        return super().call_at(when, self._run_or_keep, callback, args, context, context=context)

    def _run_or_keep(self, callback: Callable[..., Any], args: tuple[Any, ...], context: Context) -> None:
        kept = self._frozen.get(context.get(SERVICE, ""))
        if kept is None:
            callback(*args)
        else:
            kept.append((callback, args, context))

    def freeze(self, service: str) -> None:
        """Stop `service` between two of its callbacks."""
        self._frozen.setdefault(service, [])

    def thaw(self, service: str) -> None:
        """Let `service` go on with all that came due while it was frozen, in order."""
        for callback, args, context in self._frozen.pop(service, []):
            self.call_soon(callback, *args, context=context)


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run `main` on a new VirtualLoop to its end; raises what it raises, Stuck when it waits for ever."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)
