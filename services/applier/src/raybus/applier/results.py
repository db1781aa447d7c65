"""The one `result` message of a root: all present refusals and the last drop; how it changes is pure (design §3)."""

from collections.abc import Collection
from typing import NamedTuple

from raybus.api.decision import Ref
from raybus.api.messages import Drop, Refusal, Result
from raybus.api.times import Instant
from raybus.kube.port import KubeError, Rejected, Transient

FIRST_RETRY = 5.0
LONGEST_RETRY = 300.0
"""Seconds between two attempts of a refused intent: they double from the first to the longest."""

KEEP_UNASKED = 60.0
"""Seconds after its `retry_at` that a refusal stays although no Decision asks for its intent any more."""

MAX_REFUSALS = 200
NAME_TAKEN = "name-taken"


class Attempt(NamedTuple):
    """What became of a Decision's intents, by fingerprint: `current` = all that it asks for."""

    current: Collection[str] = ()
    done: Collection[str] = ()
    refused: tuple[Refusal, ...] = ()


def is_final(error: KubeError) -> bool:
    """Whether an error counts as a refusal rather than as a reason to deliver the Decision again.

    One that the server itself calls internal (a webhook that fails, for example) does, once all attempts have failed:
    its user must see it. Missing authentication does not: it is the applier's trouble, not that of the object.
    """
    match error:
        case Transient():
            return error.status == 500
        case Rejected():
            return error.code != 401
        case _:
            return True


def refuse(intent: str, ref: Ref, verb: str, error: KubeError, now: Instant) -> Refusal:
    """The first refusal of an intent (by fingerprint); `merge` counts on from earlier ones."""
    match error:
        case Rejected():
            code, reason = error.code, error.reason
        case Transient():
            code, reason = error.status, "InternalError"
        case _:
            code, reason = 0, "Bug"
    return Refusal(
        intent=intent,
        ref=ref,
        verb=verb,
        code=code,
        reason=reason,
        message=str(error),
        at=now,
        retry_at=Instant(now + FIRST_RETRY),
    )


def resting(result: Result | None, root_uid: str, intent: str, now: Instant) -> float:
    """Seconds until a refused intent may be tried again, 0.0 if it may be now."""
    if result is None or result.root_uid != root_uid:
        return 0.0
    return max((r.retry_at - now for r in result.refusals if r.intent == intent and r.retry_at > now), default=0.0)


def merge(base: Result | None, root_uid: str, attempt: Attempt, drop: Drop | None, now: Instant) -> Result:
    """The next result. Refusals of other intents stay while they are asked for or still rest; those of an earlier
    object of the same name go. A Decision that could be read clears a drop as `invalid`."""
    if base is None or base.root_uid != root_uid:
        base = Result(root_uid=root_uid)
    before = {refusal.intent: refusal for refusal in base.refusals}
    fresh = {refusal.intent: _count_on(refusal, before.get(refusal.intent)) for refusal in attempt.refused}
    kept = {
        intent: refusal
        for intent, refusal in before.items()
        if intent not in attempt.done and (intent in attempt.current or refusal.retry_at + KEEP_UNASKED > now)
    }
    last = base.drop if base.drop is not None and base.drop.cause != "invalid" else None
    return Result(root_uid=root_uid, refusals=tuple({**kept, **fresh}.values())[-MAX_REFUSALS:], drop=drop or last)


def merge_invalid(base: Result | None, drop: Drop) -> Result:
    """The next result after a message that could not be read. One such entry wakes the owner; a second one would make
    the two of them write to each other for ever, so it changes nothing."""
    if base is None:
        return Result(root_uid="", drop=drop)
    if base.drop is not None and base.drop.cause == "invalid":
        return base
    return Result(root_uid=base.root_uid, refusals=base.refusals, drop=drop)


def _count_on(refusal: Refusal, earlier: Refusal | None) -> Refusal:
    attempts = 1 if earlier is None else earlier.attempts + 1
    wait = min(FIRST_RETRY * 2.0 ** min(attempts - 1, 10), LONGEST_RETRY)
    return Refusal(
        intent=refusal.intent,
        ref=refusal.ref,
        verb=refusal.verb,
        code=refusal.code,
        reason=refusal.reason,
        message=refusal.message,
        at=refusal.at,
        retry_at=Instant(refusal.at + wait),
        attempts=attempts,
    )
