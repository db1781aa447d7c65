"""What is said of a Decision once its effects are in place: Kubernetes Events and the timeline. The next Decision of
the same root need not wait for it."""

from collections.abc import Callable, Iterator

import msgspec
import structlog

from raybus.api.decision import Create, Intent, Json, Note, Why
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
        bodies = [
            event(root, note, str(job.view_seq), (note.reporter or usual, self._instance), self._now())
            for note in notes(run)
        ]
        await everything([self._send(lane, body) for body in bodies])
        entry = entry_of(run, self._now())
        if entry is not None:
            try:
                await self._record.timeline(entry, run.trace)
            except BusError as error:
                log.warning("timeline entry lost", root=str(root.ref), error=str(error))

    async def _send(self, lane: Lane, body: Json) -> None:
        request = write.create("Event", body["metadata"]["namespace"], msgspec.json.encode(body))
        try:
            await lane.send(request, Urgency.REFRESH)
        except Fenced as error:
            log.info("event not sent", reason=body["reason"], why=str(error))
        except KubeError as error:
            if not (isinstance(error, Rejected) and error.reason == "AlreadyExists"):
                log.warning("event not sent", reason=body["reason"], error=str(error))


def notes(run: Run) -> Iterator[Note]:
    """What to tell: of each intent that did or was refused something, and what the Decision itself says."""
    for outcome in run.outcomes:
        done = outcome.intent.done
        if done is not None and outcome.changed:
            yield about(done, outcome.changed)
        if outcome.refused is not None:
            ref, error = outcome.refused
            failed = _failure(outcome.intent, error)
            if failed is not None:
                yield with_cause(about(failed, [ref.name]), said(error))
    if run.stored and run.drop is None:
        yield from run.job.message.notes


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
