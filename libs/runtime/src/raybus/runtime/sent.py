"""What was last published about a root, and whether a new decision says anything that this did not."""

import asyncio

from msgspec import Struct

from raybus.api.decision import Intent
from raybus.api.messages import IntentMessage
from raybus.api.subjects import RESULT
from raybus.runtime.cache import RootState
from raybus.runtime.compose import Composed, covered, same_message

UNDER_WAY = 5.0
"""Seconds without any progress after which the rest of a Decision that is being carried out is published again."""


class Sent(Struct):
    """What was last published about one root, to leave out what would say nothing new.

    `rest`: what of `intent` was still to be done when last looked at, and `moved` when that became less. `first`: the
    time of the first event since the last decision; `calm` fires when the events may have paused.
    """

    intent: IntentMessage | None = None
    rest: tuple[Intent, ...] = ()
    moved: float = 0.0
    at_seq: int = 0
    generation: int = -1
    asks: bytes | None = None
    because: bytes = b""
    held_since: float | None = None
    timer: asyncio.TimerHandle | None = None
    first: float | None = None
    calm: asyncio.TimerHandle | None = None

    def cancel(self) -> None:
        """Stop both timers."""
        for timer in (self.timer, self.calm):
            if timer:
                timer.cancel()


def news(sent: Sent, state: RootState, composed: Composed, clock: float) -> tuple[IntentMessage | None, float]:
    """(the intent to publish, None if it says nothing new; seconds until that has to be looked at again, 0.0 = never).

    The same content goes out again when any object changed since: the applier may have dropped the earlier one as made
    on an older view. What is only the rest of one that is being carried out does not (ADR 0090): it would be dropped as
    made on an older view, or done twice. A decision that has become empty replaces one made for an older generation.
    """
    message = composed.intent
    if message is None:
        outdated = sent.intent is not None and sent.generation != composed.ask.root.generation
        sent.intent = None
        return (IntentMessage(root=composed.ask.root) if outdated else None), 0.0
    if sent.intent is not None:
        if same_message(sent.intent, message):
            if state.object_seq <= sent.at_seq:
                return None, 0.0
        elif covered(sent.intent, message) and not _answered(state, sent.at_seq):
            if sent.rest != message.intents:
                sent.rest, sent.moved = message.intents, clock
            if clock < sent.moved + UNDER_WAY:
                return None, sent.moved + UNDER_WAY - clock
    sent.intent, sent.rest, sent.moved = message, message.intents, clock
    return message, 0.0


def _answered(state: RootState, seq: int) -> bool:
    """Whether the applier has refused or dropped something since the view had sequence `seq`."""
    entry = state.entries.get((RESULT, "applier"))
    return entry is not None and entry.seq > seq
