"""One Decision, in order: fences, finalizers, status, children in parallel, removal of finalizers; and the result that
the view is told of it (design §3 "Applier"). Events and timeline follow in `aftermath`."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import structlog

from raybus.api import subjects
from raybus.api.kinds import BY_KIND
from raybus.api.messages import H_GONE, H_UID, Drop, Epoch, Refusal, Result, fingerprint
from raybus.api.times import Instant
from raybus.applier.budget import Urgency
from raybus.applier.calls import Calls, Fenced
from raybus.applier.echo import Echo
from raybus.applier.intents import Hands, Outcome, everything, sentence, verb_of
from raybus.applier.job import Job, RootKey
from raybus.applier.memory import Memory, RootMemory
from raybus.applier.record import Record
from raybus.applier.results import Attempt, is_final, merge, merge_invalid, refuse, resting
from raybus.applier.root import Conflicted, RootHands, step_key
from raybus.bus.port import Bus
from raybus.kube.port import KubeError, Transient
from raybus.telemetry.traces import span

log = structlog.get_logger()


class Epochs(Protocol):
    """The leases of the controllers, as followed on the bus (`raybus.bus.epochs`)."""

    async def judge(self, controller: str, partition: int, epoch: Epoch) -> Literal["current", "old", "unknown"]:
        """Whether a Decision of this epoch comes from the partition's owner. Raises BusError."""


@dataclass
class Run:
    """What has become of one Decision so far.

    `stored`: finalizers and status are in place, so that its notes may be told. `did`: sentences for the timeline.
    `pending`: why it has to be delivered again; `rests`: seconds until something refused earlier may be tried again.
    """

    job: Job
    memory: RootMemory
    trace: Mapping[str, str]
    result: Result | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    steps: dict[str, bool] = field(default_factory=dict)
    refused: list[Refusal] = field(default_factory=list)
    drop: Drop | None = None
    pending: str = ""
    rests: float = 0.0
    stored: bool = False
    did: list[str] = field(default_factory=list)

    def attempt(self) -> Attempt:
        """What `results.merge` needs to know."""
        return Attempt(
            current={fingerprint(intent) for intent in self.job.message.intents} | self.steps.keys(),
            done={o.key for o in self.outcomes if o.done} | {key for key, done in self.steps.items() if done},
            refused=tuple(self.refused),
        )


class _Stopped(Exception):
    """A step on the root was refused, or rests: what follows it must not be done."""


class Carrier:
    """Carries out Decisions, one at a time for each root."""

    def __init__(self, bus: Bus, calls: Calls, epochs: Epochs, now: Callable[[], Instant]) -> None:
        self._bus, self._calls, self._epochs, self._now = bus, calls, epochs, now
        self._echo = Echo(bus, now)
        self.record = Record(bus, now)

    async def carry(self, job: Job, memory: Memory) -> Run:
        """Do all that may be done now. Raises Fenced (nothing more may be sent) and BusError (to be done again)."""
        root = job.message.root
        attributes = {"k8s.namespace.name": root.namespace, "raybus.root": root.name, "raybus.view_seq": job.view_seq}
        with span(f"apply {root.kind}", job.parent, attributes) as trace:
            run = Run(job, memory.of(job.key), trace)
            verdict = await self._epochs.judge(job.controller, job.partition, job.epoch)
            if verdict != "current":
                run.drop = self._drop(job, "epoch", f"epoch {job.epoch} of its controller is {verdict}")
            elif await self._is_outdated(job, memory, run.memory):
                log.debug("decision made on an older view, dropped", root=str(root.ref), view_seq=job.view_seq)
                return run
            elif run.memory.failures and await self._is_buried(job):
                log.debug("decision about a root that is gone, dropped", root=str(root.ref))
                return run
            else:
                await self._do(run)
            await self._tell(run)
            return run

    async def refuse_invalid(self, key: RootKey, memory: Memory, text: str) -> None:
        """Leave word that a message about this root could not be read. Raises BusError."""
        drop = Drop(cause="invalid", at=self._now(), view_seq=0, text=text)
        await self.record.update(key, memory.of(key), lambda base: merge_invalid(base, drop), {})

    async def _is_outdated(self, job: Job, memory: Memory, remembered: RootMemory) -> bool:
        """Whether the Decision was made before our last effect was in the view: the echo has woken its owner, so
        dropping it loses nothing (design §3 "Own writes come back at once")."""
        if job.view_seq >= remembered.effect:
            return False
        life = await self._bus.stream_created("VIEW")
        if life != memory.life:
            memory.begin(life)
            return False
        return True

    async def _is_buried(self, job: Job) -> bool:
        """Whether the root of a Decision that has failed before is gone: no controller replaces it any more, and what
        it would create now may have been there and gone already."""
        root = job.message.root
        subject = subjects.view(*job.key, BY_KIND[root.kind].token, root.name)
        message = await self._bus.last("VIEW", subject)
        return message is not None and (H_GONE in message.headers or message.headers.get(H_UID) != root.uid)

    async def _do(self, run: Run) -> None:
        job, message = run.job, run.job.message
        lane = self._calls.lane(job.partition, message.root.namespace, run.memory.age, lambda: self._check_epoch(job))
        root = RootHands(job, lane, self._echo, run.trace)
        hands = Hands(job.key, message.root.uid, lane, self._echo, run.trace)
        if job.no_result and not run.memory.result_read:
            run.memory.result_read = True
        run.result = await self.record.result(job.key, run.memory)
        urgency = Urgency.URGENT if message.urgent else Urgency.STATUS
        try:
            first, status, last = message.finalizers_first, message.status, message.finalizers_last
            if first is not None:
                await self._step(run, "add finalizer", first, lambda: root.finalizers(first, urgency))
            if status is not None:
                await self._step(run, "write status", status, lambda: root.status(status, urgency))
            run.stored = True
            await self._intents(run, hands)
            # A root that goes takes its Decision with it: whatever is not done yet would never be.
            if last is not None and not run.rests and all(outcome.done for outcome in run.outcomes):
                await self._step(run, "remove finalizer", last, lambda: root.finalizers(last, Urgency.URGENT))
        except Conflicted as error:
            run.drop = self._drop(job, "conflict", str(error))
        except Transient as error:
            run.pending = str(error)
        except _Stopped:
            pass
        finally:
            run.memory.effect = max(run.memory.effect, root.seq, *(o.seq for o in run.outcomes), 0)

    async def _check_epoch(self, job: Job) -> None:
        """Waiting for a turn, or for an answer, may take long enough for its controller to lose the partition. The
        Decision is dropped when it comes again. Raises Fenced, BusError."""
        if await self._epochs.judge(job.controller, job.partition, job.epoch) != "current":
            raise Fenced(f"epoch {job.epoch} of its controller is not the present one any more", 0.0)

    async def _step(self, run: Run, verb: str, content: Any, doing: Callable[[], Awaitable[None]]) -> None:
        """One write to the root. Raises Conflicted, Transient, Fenced, BusError, and _Stopped after a refusal."""
        root, key, now = run.job.message.root, step_key(verb, content), self._now()
        rests = resting(run.result, root.uid, key, now)
        if rests:
            run.rests = rests
            raise _Stopped
        run.steps[key] = False
        try:
            await doing()
        except KubeError as error:
            if not is_final(error):
                raise Transient(str(error)) from error
            run.refused.append(refuse(key, root.ref, verb, error, now))
            raise _Stopped from error
        run.steps[key] = True
        run.did.append(verb)

    async def _intents(self, run: Run, hands: Hands) -> None:
        now, uid = self._now(), run.job.message.root.uid
        todo = []
        for intent in run.job.message.intents:
            wait = resting(run.result, uid, fingerprint(intent), now)
            if wait:
                run.rests = min(run.rests or wait, wait)
            else:
                todo.append(intent)
        run.outcomes = await everything([hands.carry(intent) for intent in todo])
        for outcome in run.outcomes:
            if outcome.refused is not None:
                ref, error = outcome.refused
                run.refused.append(refuse(outcome.key, ref, verb_of(outcome.intent), error, now))
            run.pending = run.pending or outcome.pending
            if outcome.changed:
                run.did.append(sentence(outcome))

    async def _tell(self, run: Run) -> None:
        uid, attempt, now = run.job.message.root.uid, run.attempt(), self._now()
        for refusal in run.refused:
            log.warning("refused by the API server", ref=str(refusal.ref), verb=refusal.verb, error=refusal.message)
        if run.drop is not None:
            log.info("decision dropped", root=str(run.job.message.root.ref), cause=run.drop.cause, why=run.drop.text)
        drop = run.drop
        await self.record.update(run.job.key, run.memory, lambda base: merge(base, uid, attempt, drop, now), run.trace)

    def _drop(self, job: Job, cause: Literal["epoch", "conflict"], text: str) -> Drop:
        return Drop(cause=cause, at=self._now(), view_seq=job.view_seq, text=text)
