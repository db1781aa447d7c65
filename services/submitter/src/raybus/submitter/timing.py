"""How long to wait for what, and a bound on the whole time of a blocking call."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(frozen=True, kw_only=True)
class Timing:
    """All in seconds.

    call: whole time of one HTTP call or WebSocket handshake; log: of the call for the whole log.
    first_wait, longest_wait: pauses between tries, doubling from one to the other.
    give_up: how long the dashboard may be out of reach before following fails; KubeRay's own patience with a dashboard
    (contract rayjob §2.11).
    submit_for: how long the submit call is repeated when Ray says it cannot take jobs yet.
    quiet: silence on the log connection after which the job's status is asked.
    remind: how often a long wait is mentioned again.
    """

    call: float = 10
    log: float = 60
    first_wait: float = 0.2
    longest_wait: float = 10
    give_up: float = 300
    submit_for: float = 60
    quiet: float = 30
    remind: float = 30

    def wait(self, tries: int) -> float:
        """The pause after the given number of tries in a row without success (1, 2, ...)."""
        return min(self.first_wait * 2.0 ** min(tries - 1, 30), self.longest_wait)


_AGAIN = 0.5


class OutOfTime(OSError):
    """A blocking call took longer than its bound."""


@contextmanager
def bounded(seconds: float) -> Iterator[None]:
    """Raise OutOfTime in the block once `seconds` have passed, whatever it is waiting for.

    A socket's own time-out starts anew with every byte, so a peer that drips bytes would hold the caller for ever; the
    process's interval timer does not. Main thread only; not nestable.
    """

    def expire(_signum: int, _frame: FrameType | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise OutOfTime(f"no complete answer within {seconds:g} s")

    before = signal.signal(signal.SIGALRM, expire)
    # Repeated, because the first signal may come right before a system call, which then sleeps through it.
    signal.setitimer(signal.ITIMER_REAL, seconds, _AGAIN)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
