"""From a decision to the messages that carry it: pure, the comparison with what is stored (design §3, §4)."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from raybus.api.decision import Apply, Create, CreatePods, Decision, Delete, GenerateSecret, Intent, Json, Patch
from raybus.api.messages import AskMessage, IntentMessage, Result, Root, fingerprint
from raybus.api.times import Instant
from raybus.runtime.cache import Stored

OUR_FINALIZERS = "ray.io/"
"""A decision speaks of finalizers with this prefix; those of others (Kueue, Foreground deletion) stay as they are."""

PHASE_FIELDS = ("jobDeploymentStatus", "state", "serviceStatus")
"""Status fields that say in one word where a root stands, for the timeline."""


class Composed(NamedTuple):
    """`intent`: None when nothing is to be done. `ask`: what the root wants to know now (may be empty)."""

    intent: IntentMessage | None
    ask: AskMessage
    wake_at: Instant | None


def compose(root: Root, stored: Stored, decision: Decision, result: Result | None, now: Instant) -> Composed:
    """What is left of `decision` once everything that is stored already, or refused for now, is taken out."""
    refused = _refused(result, root, now)
    intents = tuple(i for i in decision.intents if fingerprint(i) not in refused) if refused else decision.intents
    left_out = len(intents) < len(decision.intents)
    status = decision.status if decision.status is not None and decision.status != (stored.status or {}) else None
    first, last = _finalizers(stored, decision.finalizers)
    message = IntentMessage(
        root=root,
        finalizers_first=first,
        status=status,
        urgent=decision.urgent,
        intents=intents,
        finalizers_last=last,
        notes=decision.notes,
    )
    something = bool(intents or decision.notes) or status is not None or first is not None or last is not None
    times = [t for t in (decision.wake_at, min(refused.values()) if left_out and refused else None) if t is not None]
    return Composed(
        message if something else None,
        AskMessage(root=root, asks=decision.asks, needs=decision.needs),
        min(times, default=None),
    )


def _refused(result: Result | None, root: Root, now: Instant) -> Mapping[str, Instant]:
    """Fingerprint -> time of the next try, for refusals of this very object that still rest."""
    if result is None or result.root_uid != root.uid:
        return {}
    return {refusal.intent: refusal.retry_at for refusal in result.refusals if refusal.retry_at > now}


def _finalizers(stored: Stored, wanted: frozenset[str] | None) -> tuple[tuple[str, ...] | None, tuple[str, ...] | None]:
    """(whole list to store before any child, whole list to store last); None = no change."""
    present = stored.metadata.finalizers
    if wanted is None:
        return None, None
    missing = tuple(sorted(wanted - set(present)))
    surplus = {name for name in present if name.startswith(OUR_FINALIZERS)} - wanted
    first = (*present, *missing) if missing and stored.metadata.deletion_timestamp is None else None
    last = tuple(name for name in (first or present) if name not in surplus) if surplus else None
    return first, last


def same_message(sent: IntentMessage, intent: IntentMessage) -> bool:
    """Whether `intent` says what `sent` said. The version matters only where it is a fence."""
    fenced = intent.status is not None or intent.finalizers_first is not None or intent.finalizers_last is not None
    version = intent.root.resource_version if fenced else sent.root.resource_version
    root = msgspec.structs.replace(intent.root, resource_version=version)
    return msgspec.structs.replace(intent, root=root) == sent


def covered(sent: IntentMessage, intent: IntentMessage) -> bool:
    """Whether `intent` asks for nothing but a part of the children that `sent` asked for."""
    only_children = intent.status is None and intent.finalizers_first is None and intent.finalizers_last is None
    if not only_children or intent.notes or intent.root.uid != sent.root.uid:
        return False
    return all(any(_within(wish, earlier) for earlier in sent.intents) for wish in intent.intents)


def _within(wish: Intent, earlier: Intent) -> bool:
    if isinstance(wish, CreatePods) and isinstance(earlier, CreatePods):
        rest = {slot.name for slot in wish.slots} <= {slot.name for slot in earlier.slots}
        return rest and msgspec.structs.replace(wish, slots=earlier.slots) == earlier
    return wish == earlier


def phase_change(stored: Stored, status: Json | None) -> str:
    """`Old -> New` of the status field that names the phase, "" when it stays the same."""
    if status is None:
        return ""
    for field in PHASE_FIELDS:
        old, new = (stored.status or {}).get(field, ""), status.get(field, "")
        if old != new:
            return f"{old or 'New'} -> {new or 'New'}"
    return ""


def sentences(message: IntentMessage | None) -> tuple[str, ...]:
    """What an intent does, in short sentences without any content of the objects."""
    if message is None:
        return ()
    done = [_sentence(intent) for intent in message.intents]
    if message.finalizers_first is not None:
        done.insert(0, "add finalizer")
    if message.status is not None:
        done.append("write status")
    if message.finalizers_last is not None:
        done.append("remove finalizer")
    done += [f"event {note.reason}" for note in message.notes]
    return tuple(done)


def _sentence(intent: Intent) -> str:
    match intent:
        case CreatePods():
            names = [slot.name for slot in intent.slots]
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            return f"create Pod {', '.join(names[:3])}{more}"
        case GenerateSecret():
            return f"generate Secret {intent.ref.name}"
        case Create() | Apply() | Patch() | Delete():
            return f"{type(intent).__name__.lower()} {intent.ref.kind} {intent.ref.name}"
