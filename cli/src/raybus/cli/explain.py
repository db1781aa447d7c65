"""`raybus explain`: why an object is where it is, and what to do next.

The controllers write their reasons into the timeline; the newest entry that has any is the present answer. A reason
about another custom resource (the RayCluster of a RayJob) is followed to that one's reasons.
"""

from collections.abc import Callable, Iterator, Sequence

from raybus.api.decision import Why
from raybus.api.kinds import BY_KIND
from raybus.api.messages import TimelineEntry
from raybus.cli.place import ROOT_TOKENS, Target

Lookup = Callable[[Target], Sequence[TimelineEntry]]
"""The timeline of an object, oldest first."""

DEPTH = 3
"""RayCronJob -> RayJob -> RayCluster: no chain of causes is longer."""


def phase_of(entries: Sequence[TimelineEntry]) -> str:
    """The newest phase that the timeline names, "" if none does."""
    return next((entry.phase.rpartition("-> ")[2] for entry in reversed(entries) if entry.phase), "")


def reasons(entries: Sequence[TimelineEntry]) -> tuple[Why, ...]:
    """The reasons of the newest decision; an applier's entry about a refusal does not hide them."""
    return next((e.because for e in reversed(entries) if e.service.endswith("-ctl")), ())


def about(why: Why, target: Target) -> Target | None:
    """The other custom resource that a reason points to, None when it has none of its own."""
    if why.about is None or BY_KIND[why.about.kind].token not in ROOT_TOKENS:
        return None
    other = Target(BY_KIND[why.about.kind].token, why.about.namespace, why.about.name)
    return None if other == target else other


def explain(target: Target, look: Lookup, indent: int = 0) -> Iterator[str]:
    """The lines of the answer."""
    entries = look(target)
    pad = "  " * indent
    if not entries:
        yield f"{pad}{target}: nothing is recorded. Does it exist, in namespace {target.namespace}?"
        return
    phase = phase_of(entries)
    yield f"{pad}{target}" + (f" is {phase}" if phase else "")
    for why in reasons(entries):
        where = f" [{why.about.kind} {why.about.name}]" if why.about else ""
        yield f"{pad}  {why.reason}{where}: {why.text}"
        if why.next_step:
            yield f"{pad}    next: {why.next_step}"
        other = about(why, target)
        if other is not None and indent < DEPTH:
            yield from explain(other, look, indent + 2)
