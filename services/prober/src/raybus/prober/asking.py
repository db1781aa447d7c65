"""One ask being worked on: a probe that is repeated, or an action that is done once (design §3)."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import assert_never

import structlog

from raybus.api.decision import Ask, ProbeJob, StopJob, SubmitJob
from raybus.api.messages import Fact, Root
from raybus.api.times import Instant
from raybus.bus.port import Bus, BusError
from raybus.prober.facts import FactStore
from raybus.prober.heads import Heads, HeadState
from raybus.prober.history import entry_of, is_news, tell
from raybus.prober.ports import Answer, Dashboards, Lease
from raybus.telemetry.traces import span

QUICK = 1.0
"""Seconds between two looks at a job while there are few asks."""
LOOKS_PER_SECOND = 150
"""With more asks than this many, looks become rarer, down to the confirmations that each ask wants."""
ALMOST = 0.9
"""Part of `fresh` after which an unchanged answer is confirmed: the next look would come too late."""
FENCED_WAIT = 0.25
BUS_WAIT = 1.0
LONGEST_RETRY = 5.0
"""Seconds between two attempts of an action that Ray refused for now: from 0.5 on they double."""

log = structlog.get_logger()


@dataclass(frozen=True)
class Asked:
    """One ask as it stands on the bus; `trace`: headers of the trace that led to it."""

    controller: str
    partition: int
    root: Root
    ask: Ask
    trace: Mapping[str, str]

    @property
    def key(self) -> tuple[str, str, str]:
        """(controller, namespace, name) of the root."""
        return self.controller, self.root.namespace, self.root.name


@dataclass(frozen=True)
class Tools:
    """What every ask is worked on with. `now`: wall clock."""

    bus: Bus
    dashboards: Dashboards
    heads: Heads
    lease: Lease
    now: Callable[[], Instant]


async def work_on(asked: Asked, tools: Tools) -> None:
    """Probe until cancelled, or act until the action has an outcome that stands."""
    state = tools.heads.join(asked.ask.head)
    try:
        await _Asking(asked, tools, state).run()
    except Exception:
        log.exception("bug while working on an ask", root=str(asked.root.ref), ask=asked.ask.id)
    finally:
        tools.heads.leave(asked.ask.head)


class _Asking:
    def __init__(self, asked: Asked, tools: Tools, state: HeadState) -> None:
        self._asked, self._tools, self._state = asked, tools, state
        self._store = FactStore(tools.bus, asked.key, asked.ask.id)

    async def run(self) -> None:
        await self._read()
        ask = self._asked.ask
        if isinstance(ask, ProbeJob):
            await self._probe(ask)
        elif not self._is_done():
            await self._act()

    async def _read(self) -> None:
        while True:
            try:
                await self._store.read()
            except BusError as error:
                self._complain(error)
                await asyncio.sleep(BUS_WAIT)
            else:
                return

    def _is_done(self) -> bool:
        """Whether this action took place on this head already: its fact is the memory of that (design §3)."""
        fact = self._store.stored
        return fact is not None and fact.head == self._asked.ask.head.pod_uid and fact.outcome in ("ok", "missing")

    async def _probe(self, ask: ProbeJob) -> None:
        while True:
            fact, _ = await self._call()
            stored = self._store.stored
            # A clock that was set back makes the stored time one that no deadline may be compared with.
            recent = stored is not None and 0.0 <= fact.begun - stored.begun < ask.fresh * ALMOST
            if is_news(stored, fact) or not recent:
                await self._publish(fact)
            pace = min(ask.fresh, max(QUICK, self._tools.heads.askers / LOOKS_PER_SECOND))
            await asyncio.sleep(self._state.back_off() or pace)

    async def _act(self) -> None:
        wait = 0.5
        while True:
            fact, final = await self._call()
            while is_news(self._store.stored, fact):
                if not await self._publish(fact):
                    await asyncio.sleep(BUS_WAIT)
            if final:
                return
            await asyncio.sleep(self._state.back_off() or wait)
            wait = min(wait * 2, LONGEST_RETRY)

    async def _call(self) -> tuple[Fact, bool]:
        """One call to the head, once it may be made: the fact, and whether asking again would bring nothing new."""
        ask, tools = self._asked.ask, self._tools
        while True:
            async with tools.heads.place(self._state):
                if tools.lease.owns(self._asked.partition) and tools.lease.fresh():
                    begun = tools.now()
                    answer = await self._answer(ask)
                    break
            await asyncio.sleep(FENCED_WAIT)
        self._state.failures = self._state.failures + 1 if answer.outcome in ("unreachable", "refused") else 0
        fact = Fact(
            id=ask.id,
            head=ask.head.pod_uid,
            begun=begun,
            at=tools.now(),
            outcome=answer.outcome,
            job=answer.job,
            text=answer.text,
        )
        return fact, answer.final

    async def _answer(self, ask: Ask) -> Answer:
        namespace, dashboards = self._asked.root.namespace, self._tools.dashboards
        match ask:
            case ProbeJob():
                return await dashboards.job(namespace, ask.head, ask.job_id)
            case SubmitJob():
                with span("ray submit", self._asked.trace):
                    return await dashboards.submit(namespace, ask.head, ask.job_id, ask.request)
            case StopJob():
                with span("ray stop", self._asked.trace):
                    return await dashboards.stop(namespace, ask.head, ask.job_id)
            case _:
                assert_never(ask)

    async def _publish(self, fact: Fact) -> bool:
        """Tell the view, and the timeline if it is news. False when the bus did not take it: the next round tries
        again."""
        try:
            if is_news(self._store.stored, fact):
                await self._publish_news(fact)
            else:
                await self._store.publish(fact, self._asked.trace)
        except BusError as error:
            self._complain(error)
            return False
        return True

    async def _publish_news(self, fact: Fact) -> None:
        asked = self._asked
        status = fact.job.status if fact.job else ""
        attributes = {"raybus.ask": fact.id, "raybus.outcome": fact.outcome, "ray.job.status": status}
        with span("ray fact", asked.trace, attributes) as trace:
            entry = entry_of(asked.root, asked.ask, self._store.stored, fact, trace)
            await self._store.publish(fact, trace)
            if entry is not None:
                await tell(self._tools.bus, entry, trace)

    def _complain(self, error: BusError) -> None:
        log.warning("the bus does not answer", root=str(self._asked.root.ref), ask=self._asked.ask.id, error=str(error))
