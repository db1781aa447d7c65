"""The loop around gather and decide for one partition (design §3, §4).

A root is decided once when the partition has been loaded and marked, then whenever its view changes or its timer
fires. Roots are decided in the order in which they changed; one root is never published twice at once.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import structlog

from raybus.api import subjects
from raybus.api.decision import Decision
from raybus.api.kinds import ROOTS
from raybus.api.messages import (
    H_EPOCH,
    H_RESULT_SEQ,
    H_ROOT_SEQ,
    H_SCHEMA,
    H_VIEW_SEQ,
    SCHEMA,
    TOMBSTONE_TTL,
    AskMessage,
    Epoch,
    IntentMessage,
    Result,
    Root,
    TimelineEntry,
)
from raybus.api.schema import Newer, Unreadable
from raybus.api.times import Instant
from raybus.bus.port import Bus, BusError, Loaded, Reset
from raybus.runtime.behind import Behind
from raybus.runtime.cache import PartitionCache, RootKey, RootState, root_label
from raybus.runtime.calm import Calm
from raybus.runtime.compose import Composed, compose, phase_change, sentences
from raybus.runtime.controller import Controller
from raybus.runtime.sent import Sent, news
from raybus.telemetry import metrics
from raybus.telemetry.traces import span, trace_id

QUIET, QUIET_BUSY, QUIET_AT_MOST = 1.0, 4.0, 5.0
"""Seconds without events that a status which only counts progress waits for, with nothing and with much to do, and how
long at most (design §4): each write costs the API server as much as two pods."""
BUG_RETRY = 30.0
"""Seconds until a root whose decision raised an exception is tried again."""
SWEEP = 600.0
"""Seconds between two sweeps for expired tombstones."""
IN_FLIGHT = 64
"""Decisions being published at the same time."""

log = structlog.get_logger()


class Partition:
    """One owned partition. `run` follows its view until it is cancelled; `problem` says why it does not decide,
    `behind` about which roots it does not because it is too old."""

    def __init__(
        self,
        controller: Controller[Any, Any],
        number: int,
        epoch: Epoch,
        bus: Bus,
        now: Callable[[], Instant],
        calm: Calm,
    ) -> None:
        self.controller, self.number, self.epoch, self.bus, self.now = controller, number, epoch, bus, now
        self.calm = calm
        self.service = f"{controller.name}-ctl"
        self.cache = PartitionCache(controller)
        self.sent: dict[RootKey, Sent] = {}
        self.dirty: dict[RootKey, None] = {}
        self.busy: set[RootKey] = set()
        self.wake = asyncio.Event()
        self.created = ""
        self.loaded = False
        self.problem = "the view is being loaded"
        self.behind = Behind(self.service, "VIEW")

    async def run(self) -> None:
        """Follow, decide and publish until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow())
                tasks.create_task(self._sweep())
                await self._decide_dirty(tasks)
        finally:
            self._forget()

    # ---- messages in

    async def _follow(self) -> None:
        loop = asyncio.get_running_loop()
        async for event in self.bus.follow("VIEW", [subjects.view_partition(self.controller.name, self.number)]):
            match event:
                case Reset(why):
                    metrics.RESETS.labels(self.service).inc()
                    self._forget()
                    log.info("loading the view", controller=self.controller.name, partition=self.number, why=why)
                case Loaded():
                    self.created = await self._stream_created()
                    self.loaded = True
                    self._open()
                case message:
                    self._take(message, loop.time())

    def _take(self, message: Any, now: float) -> None:
        self.behind.replaced(message.subject)
        try:
            root = self.cache.apply(message, now)
        except Newer as error:
            self.behind.met(message.subject, str(error))
            return
        except (Unreadable, ValueError) as error:
            metrics.BAD_MESSAGES.labels(self.service, "view").inc()
            log.error("message skipped", subject=message.subject, why=str(error))
            return
        if root is None:
            if self.problem and self.loaded:
                self._open()
        elif not self.problem:
            self._event(root, now)

    def _event(self, key: RootKey, now: float) -> None:
        """Something about a root has changed: it is decided at once for the first time, later when events pause."""
        sent = self.sent.get(key)
        if sent is None:
            self._mark(key)
        elif sent.first is None:
            sent.first = now
            self._look(key)

    def _look(self, key: RootKey) -> None:
        """Decide a root whose events have paused, look again later otherwise."""
        sent, state = self.sent.get(key), self.cache.roots.get(key)
        if sent is None or state is None or sent.first is None:
            return
        pause = self.calm.pause(sent.first, state.touched)
        if pause:
            sent.calm = asyncio.get_running_loop().call_later(pause, self._look, key)
        else:
            self._mark(key)

    def _open(self) -> None:
        """Begin to decide once the marker of the present stream has been read: children that are not published yet
        must never look missing (design §3)."""
        if self.cache.marker != self.created:
            self.problem = "the watcher has not filled the view yet"
            return
        self.problem = ""
        for root in self.cache.roots:
            self._mark(root)

    async def _stream_created(self) -> str:
        while True:
            try:
                return await self.bus.stream_created("VIEW")
            except BusError as error:
                log.warning("cannot read the state of stream VIEW, trying again", why=str(error))
                await asyncio.sleep(1)

    def _forget(self) -> None:
        for sent in self.sent.values():
            sent.cancel()
        self.sent.clear()
        self.dirty.clear()
        self.cache.clear()
        self.behind.leave(("",))
        self.loaded, self.problem = False, "the view is being loaded"

    def _mark(self, root: RootKey) -> None:
        self.dirty[root] = None
        self.wake.set()

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            self.cache.sweep(self.now())
            for root in [root for root in self.sent if root not in self.cache.roots]:
                self._drop(root)

    def _drop(self, root: RootKey) -> None:
        self.sent.pop(root).cancel()

    # ---- decisions out

    async def _decide_dirty(self, tasks: asyncio.TaskGroup) -> None:
        slots = asyncio.Semaphore(IN_FLIGHT)
        while True:
            root = next((root for root in self.dirty if root not in self.busy), None)
            if root is None:
                self.wake.clear()
                await self.wake.wait()
                continue
            del self.dirty[root]
            await slots.acquire()
            self.busy.add(root)
            tasks.create_task(self._turn(root, slots))

    async def _turn(self, key: RootKey, slots: asyncio.Semaphore) -> None:
        loop, failed = asyncio.get_running_loop(), False
        begun = loop.time()
        try:
            state = self.cache.roots.get(key)
            if state is not None and key not in self.cache.newer:
                await (self._root_gone(key) if state.stored is None else self._decide(key, state))
        except BusError as error:
            failed = True
            log.error("decision not published, trying again", root=root_label(key), why=str(error))
            self._retry(key, 1.0)
        except Exception:
            failed = True
            metrics.DECISIONS.labels(self.controller.name, "bug").inc()
            log.exception("bug while deciding", root=root_label(key), retry_seconds=BUG_RETRY)
            self._retry(key, BUG_RETRY)
        finally:
            self._count_turn(key, failed, loop.time() - begun)
            self.busy.discard(key)
            slots.release()
            self.wake.set()

    def _count_turn(self, key: RootKey, failed: bool, seconds: float) -> None:
        """For dashboards made for KubeRay (ADR 0131)."""
        sent, kind = self.sent.get(key), self.cache.root_token
        again = sent is not None and sent.timer is not None
        metrics.RECONCILES.labels(kind, "error" if failed else "requeue_after" if again else "success").inc()
        metrics.RECONCILE_SECONDS.labels(kind).observe(seconds)
        if failed:
            metrics.RECONCILE_ERRORS.labels(kind).inc()

    async def _decide(self, key: RootKey, state: RootState) -> None:
        stored, sent = state.stored, self.sent.setdefault(key, Sent())
        assert stored is not None
        sent.first = None
        self.calm.decided()
        with metrics.DECIDE_SECONDS.labels(self.controller.name).time():
            now = self.now()
            gathered = self.controller.gather(self.cache.view(key))
            if gathered is None:
                return
            decision = self.controller.decide(gathered, now, self.controller.knobs)
            root = Root(
                kind=ROOTS[self.controller.name],
                namespace=key[0],
                name=key[1],
                uid=stored.metadata.uid,
                resource_version=stored.metadata.resource_version,
                generation=stored.metadata.generation,
            )
            composed = compose(root, stored, decision, _result(state), now)
        if self._held(key, state, sent, decision, composed):
            return
        self._set_timer(key, composed.wake_at)
        await self._publish(key, state, sent, decision, composed)

    def _held(self, key: RootKey, state: RootState, sent: Sent, decision: Decision, composed: Composed) -> bool:
        """Whether a status that only counts progress, or nothing but other reasons for waiting, still waits for quiet;
        it is decided anew when that is over."""
        message, clock = composed.intent, asyncio.get_running_loop().time()
        if message is None:
            told = sent.intent is None and sent.asks == _asks(composed)
            waits = told and sent.because != msgspec.json.encode(decision.because)
        else:
            waits = decision.progress and message.status is not None and not message.intents
        if not waits:
            sent.held_since = None
            return False
        if sent.held_since is None:
            sent.held_since = clock
        quiet = QUIET + (QUIET_BUSY - QUIET) * self.calm.load()
        due = min(state.touched + quiet, sent.held_since + QUIET_AT_MOST)
        if due <= clock:
            sent.held_since = None
            return False
        self._retry(key, due - clock)
        return True

    async def _publish(
        self, key: RootKey, state: RootState, sent: Sent, decision: Decision, composed: Composed
    ) -> None:
        seq, stored = state.seq, state.stored
        assert stored is not None
        message, pause = news(sent, state, composed, asyncio.get_running_loop().time())
        if pause:
            self._retry_within(key, pause)
        asks = _asks(composed)
        because = msgspec.json.encode(decision.because)
        ask_news = asks != sent.asks and (sent.asks is not None or bool(composed.ask.asks or composed.ask.needs))
        if message is None and not ask_news and because == sent.because:
            metrics.DECISIONS.labels(self.controller.name, "nothing").inc()
            return
        metrics.DECISIONS.labels(self.controller.name, "published").inc()
        attributes = {"k8s.namespace.name": key[0], "raybus.root": key[1], "raybus.view_seq": seq}
        with span(f"decide {composed.ask.root.kind}", state.parent, attributes) as trace:
            headers = {H_EPOCH: str(self.epoch), H_VIEW_SEQ: str(seq), H_SCHEMA: SCHEMA, **trace}
            if message is not None:
                await self._put_intent(key, message, headers | self._expectations(key, state))
            if ask_news:
                await self._put_ask(key, composed.ask, headers)
            if message is not None or because != sent.because:
                entry = TimelineEntry(
                    at=self.now(),
                    service=self.service,
                    root=composed.ask.root,
                    phase=phase_change(stored, message.status if message else None),
                    did=sentences(message),
                    because=decision.because,
                    view_seq=seq,
                    trace=trace_id(trace),
                )
                kind = subjects.timeline(self.cache.root_token, *key)
                await self.bus.put("TIMELINE", kind, msgspec.json.encode(entry), {H_SCHEMA: SCHEMA, **trace})
        sent.asks, sent.because = asks, because
        sent.at_seq, sent.generation = seq, composed.ask.root.generation

    def _expectations(self, key: RootKey, state: RootState) -> dict[str, str]:
        """What the applier need not read, because it is in the view."""
        root = state.entries[self.cache.root_token, key[1]]
        result = {} if (subjects.RESULT, "applier") in state.entries else {H_RESULT_SEQ: "0"}
        return {H_ROOT_SEQ: str(root.seq), **result}

    async def _put_intent(self, key: RootKey, message: IntentMessage, headers: dict[str, str]) -> None:
        subject = subjects.intent(self.controller.name, *key)
        await self.bus.put("INTENT", subject, msgspec.json.encode(message), headers)

    async def _put_ask(self, key: RootKey, ask: AskMessage, headers: dict[str, str]) -> None:
        empty = not ask.asks and not ask.needs
        subject = subjects.ask(self.controller.name, *key)
        body = b"" if empty else msgspec.json.encode(ask)
        await self.bus.put("ASK", subject, body, headers, ttl=TOMBSTONE_TTL if empty else None)

    async def _root_gone(self, key: RootKey) -> None:
        sent = self.sent.get(key)
        if sent is None:
            return
        if sent.asks not in (None, msgspec.json.encode(((), ()))):
            subject = subjects.ask(self.controller.name, *key)
            headers = {H_EPOCH: str(self.epoch), H_SCHEMA: SCHEMA}
            await self.bus.put("ASK", subject, b"", headers, ttl=TOMBSTONE_TTL)
        self._drop(key)

    # ---- timers

    def _set_timer(self, key: RootKey, at: Instant | None) -> None:
        self._retry(key, None if at is None else max(0.0, at - self.now()))

    def _retry_within(self, key: RootKey, delay: float) -> None:
        """Decide `key` again after at most `delay` seconds."""
        sent = self.sent[key]
        if sent.timer is None or sent.timer.when() > asyncio.get_running_loop().time() + delay:
            self._retry(key, delay)

    def _retry(self, key: RootKey, delay: float | None) -> None:
        """Decide `key` again after `delay` seconds; replaces the root's timer."""
        sent = self.sent.setdefault(key, Sent())
        if sent.timer:
            sent.timer.cancel()
        sent.timer = None
        if delay is not None:
            sent.timer = asyncio.get_running_loop().call_later(delay, self._mark, key)


def _asks(composed: Composed) -> bytes:
    """What is asked, to be compared."""
    return msgspec.json.encode((composed.ask.asks, composed.ask.needs))


def _result(state: RootState) -> Result | None:
    entry = state.entries.get((subjects.RESULT, "applier"))
    return entry.value if entry and isinstance(entry.value, Result) else None
