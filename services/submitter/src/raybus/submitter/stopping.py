"""SIGTERM and SIGINT end the process at once, whatever it is waiting for."""

import os
import signal
import threading

from raybus.submitter import say

_STOP = (signal.SIGTERM, signal.SIGINT)


def leave_on_signals() -> None:
    """From now on a stop signal ends the process with 128 + its number. To be called by the main thread, first of all.

    Nothing is buffered, and the Ray job goes on without us, so there is nothing to clean up. A thread waits for the
    signals because a handler has gaps: Python runs it between two steps of the main thread, which may just have gone to
    sleep in a system call or be looking up a name; and as process 1 of a container it gets no signal without one.
    """
    # SIGALRM, by which `timing.bounded` interrupts the main thread, must not go to the waiting thread instead.
    signal.pthread_sigmask(signal.SIG_BLOCK, {*_STOP, signal.SIGALRM})
    threading.Thread(target=_wait, name="signals", daemon=True).start()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})


def _wait() -> None:
    number = signal.sigwait(_STOP)
    say.error(f"stopped by {signal.Signals(number).name}; the Ray job is not")
    os._exit(128 + number)
