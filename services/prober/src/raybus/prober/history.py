"""Which facts are news, and what the timeline says of them: never a job's message, which may quote its log."""

from collections.abc import Mapping
from typing import assert_never

import msgspec

from raybus.api import subjects
from raybus.api.decision import Ask, ProbeJob, Ref, StopJob, SubmitJob, Why
from raybus.api.kinds import BY_KIND
from raybus.api.messages import H_SCHEMA, SCHEMA, Fact, Root, TimelineEntry
from raybus.api.reasons import Reason
from raybus.bus.port import Bus
from raybus.telemetry.traces import trace_id

_WORDS = {"ok": "", "missing": ": unknown to Ray", "refused": ": refused", "unreachable": ": no answer"}


def is_news(stored: Fact | None, fact: Fact) -> bool:
    """Whether `fact` says something else than the view does; the words about a head that does not answer vary."""
    if stored is None or (stored.head, stored.outcome, stored.job) != (fact.head, fact.outcome, fact.job):
        return True
    return fact.outcome == "refused" and stored.text != fact.text


def entry_of(root: Root, ask: Ask, before: Fact | None, fact: Fact, trace: Mapping[str, str]) -> TimelineEntry | None:
    """The timeline entry of a fact that is news, None when nothing worth telling has changed."""
    status, known = fact.job.status if fact.job else "", before.job.status if before and before.job else ""
    if isinstance(ask, ProbeJob) and before is not None and (before.outcome, known) == (fact.outcome, status):
        return None
    because: tuple[Why, ...] = ()
    if fact.outcome in ("unreachable", "refused"):
        because = (
            Why(
                reason=Reason.DASHBOARD_UNREACHABLE,
                text=f"the dashboard at {ask.head.url} {_trouble(fact)}",
                about=Ref("RayCluster", root.namespace, ask.head.cluster),
                next_step=f"look at the log of the head pod of RayCluster {ask.head.cluster}",
            ),
        )
    return TimelineEntry(
        at=fact.at,
        service="prober",
        root=root,
        did=(_sentence(ask, fact, status),),
        because=because,
        trace=trace_id(trace),
    )


async def tell(bus: Bus, entry: TimelineEntry, trace: Mapping[str, str]) -> None:
    """Append to the timeline. Raises BusError."""
    subject = subjects.timeline(BY_KIND[entry.root.kind].token, entry.root.namespace, entry.root.name)
    await bus.put("TIMELINE", subject, msgspec.json.encode(entry), {**trace, H_SCHEMA: SCHEMA})


def _trouble(fact: Fact) -> str:
    return "does not answer" if fact.outcome == "unreachable" else "refused the request"


def _sentence(ask: Ask, fact: Fact, status: str) -> str:
    words = {"ok": "", "missing": ": unknown to Ray", "refused": ": refused", "unreachable": ": no answer"}[
        fact.outcome
    ]
    match ask:
        case ProbeJob():
            return f"job {ask.job_id} is {status}" if status else f"probe job {ask.job_id}{words}"
        case SubmitJob():
            return f"submit job {ask.job_id}{words}"
        case StopJob():
            return f"stop job {ask.job_id}{words}"
        case _:
            assert_never(ask)
