"""What is said of a Decision once its effects are in place: Kubernetes Events and the timeline. The next Decision of
the same root need not wait for it."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import msgspec
import structlog

from raybus.api.decision import Create, Intent, Json, Note, Ref, Why
from raybus.api.kinds import ROOTS
from raybus.api.messages import TimelineEntry
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.applier.budget import Urgency
from raybus.applier.calls import Calls, Fenced, Lane
from raybus.applier.carry import Run
from raybus.applier.events import about, event, with_cause
from raybus.applier.intents import everything
from raybus.applier.record import Record, why
from raybus.applier.results import NAME_TAKEN
from raybus.bus.port import BusError
from raybus.kube import write
from raybus.kube.port import KubeError, Rejected
from raybus.telemetry.traces import trace_id

log = structlog.get_logger()


class Teller:
    """Sends events and timeline entries. `instance` names this replica in events."""

    def __init__(self, calls: Calls, record: Record, instance: str, now: Callable[[], Instant]) -> None:
        self._calls, self._record, self._instance, self._now = calls, record, instance, now

    async def tell(self, run: Run) -> None:
        """Never raises for a single event: they are the record of an effect, not the effect."""
        job, root = run.job, run.job.message.root
        lane = self._calls.lane(job.partition, root.namespace, run.memory.age)
        usual = f"{ROOTS[job.controller].lower()}-controller"
        await everything(
            [
                self._send(lane, event(root, note, key, (note.reporter or usual, self._instance), self._now()), times)
                for note, key, times in notes(run)
            ]
        )
        entry = entry_of(run, self._now())
        if entry is not None:
            try:
                await self._record.timeline(entry, run.trace)
            except BusError as error:
                log.warning("timeline entry lost", root=str(root.ref), error=str(error))

    async def _send(self, lane: Lane, body: Json, times: int) -> None:
        namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
        try:
            if times > 1 and await self._count(lane, Ref("Event", namespace, name), body["eventTime"], times):
                return
            await lane.send(write.create("Event", namespace, msgspec.json.encode(body)), Urgency.REFRESH)
        except Fenced as error:
            log.info("event not sent", reason=body["reason"], why=str(error))
        except KubeError as error:
            if not (isinstance(error, Rejected) and error.reason == "AlreadyExists"):
                log.warning("event not sent", reason=body["reason"], error=str(error))

    async def _count(self, lane: Lane, event: Ref, now: str, times: int) -> bool:
        """Whether an Event that tells the same could be counted on: it may have expired. Raises Fenced, KubeError."""
        try:
            await lane.send(write.observed_again(event, now, times), Urgency.REFRESH)
        except Rejected as error:
            if error.code != 404:
                raise
            return False
        return True


class Told(NamedTuple):
    """One thing to tell. `key`: what tells it from the same note on another occasion; `times`: how often it was so."""

    note: Note
    key: str
    times: int


def notes(run: Run) -> Iterator[Told]:
    """What to tell: of each intent that did or was refused something, and what the Decision itself says. A refusal that
    is met again at a later attempt is one Event, counted on: its key is that of the intent."""
    occasion = str(run.job.view_seq)
    before = {refusal.intent: refusal.attempts for refusal in run.result.refusals} if run.result else {}
    for outcome in run.outcomes:
        done = outcome.intent.done
        if done is not None and outcome.changed:
            yield Told(about(done, outcome.changed), occasion, 1)
        if outcome.refused is not None:
            ref, error = outcome.refused
            failed = _failure(outcome.intent, error)
            if failed is not None:
                text = with_cause(about(failed, [ref.name]), said(error))
                yield Told(text, outcome.key, before.get(outcome.key, 0) + 1)
    if run.stored and run.drop is None:
        for note in run.job.message.notes:
            yield Told(note, occasion, 1)


def _failure(intent: Intent, error: KubeError) -> Note | None:
    """What to tell of a refusal; that another object has the name may have a note of its own."""
    if isinstance(intent, Create) and isinstance(error, Rejected) and error.reason == NAME_TAKEN:
        return intent.taken or intent.failed
    return intent.failed


def said(error: KubeError) -> str:
    """The server's own words: without the request in front of them."""
    head, separator, rest = str(error).partition(": ")
    return rest if separator and head.startswith(("POST ", "PUT ", "PATCH ", "DELETE ", "GET ")) else str(error)


def entry_of(run: Run, now: Instant) -> TimelineEntry | None:
    """The timeline entry of a Decision that changed something, was refused something or was dropped."""
    because = [why(refusal) for refusal in run.refused]
    if run.drop is not None:
        because.append(Why(reason=Reason.RETRYING, text=f"decision dropped ({run.drop.cause}): {run.drop.text}"))
    if not run.did and not because:
        return None
    return TimelineEntry(
        at=now,
        service="applier",
        root=run.job.message.root,
        did=tuple(run.did),
        because=tuple(because),
        view_seq=run.job.view_seq,
        trace=trace_id(run.trace),
    )
