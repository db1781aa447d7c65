"""What one decider (head, Service, a worker group) wants: its part of the Decision."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from raybus.api.decision import Delete, Intent, Note, Ref, Why
from raybus.api.reasons import Reason
from raybus.api.times import Instant
from raybus.cluster_ctl.pods import Pod
from raybus.cluster_ctl.view import ClusterView


class Outcome(NamedTuple):
    """Intents of one decider, and why.

    `warnings`: what is wrong for as long as it lasts: `status.reason` says it, an Event goes with the write that does.
    `needs`: objects that no watch selects. `wake_at`: when to decide again although nothing has changed.
    `notes`: Events of this very decision.
    """

    intents: tuple[Intent, ...] = ()
    because: tuple[Why, ...] = ()
    warnings: tuple[Note, ...] = ()
    needs: tuple[Ref, ...] = ()
    wake_at: Instant | None = None
    notes: tuple[Note, ...] = ()


def join(outcomes: Iterable[Outcome]) -> Outcome:
    """All that they want, in order."""
    found = tuple(outcomes)
    return Outcome(
        tuple(intent for outcome in found for intent in outcome.intents),
        tuple(why for outcome in found for why in outcome.because),
        tuple(note for outcome in found for note in outcome.warnings),
        tuple(dict.fromkeys(ref for outcome in found for ref in outcome.needs)),
        min((outcome.wake_at for outcome in found if outcome.wake_at is not None), default=None),
        tuple(note for outcome in found for note in outcome.notes),
    )


def created(reason: Reason, text: str) -> Note:
    """Event of a successful create."""
    return Note(type="Normal", reason=reason, action="Create", text=text)


def not_created(reason: Reason, text: str) -> Note:
    """Event of a refused create; the applier adds what the API server said."""
    return Note(type="Warning", reason=reason, action="Create", text=text)


def delete_pod(view: ClusterView, pod: Pod, done: Reason, failed: Reason, why: str) -> Delete:
    """Delete one pod, guarded by its UID; `why` ends the event's sentence."""
    where = f"{view.ref.namespace}/{pod.name}"
    return Delete(
        ref=view.pod_ref(pod.name),
        uid=pod.uid,
        done=Note(type="Normal", reason=done, action="Delete", text=f"Deleted pod {where}; {why}"),
        failed=Note(type="Warning", reason=failed, action="Delete", text=f"Failed to delete pod {where}; {why}"),
    )
