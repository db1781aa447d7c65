"""Wait for a condition with a deadline, and notice at once when the awaited program has died."""

import time
from collections.abc import Callable
from pathlib import Path

from raybus.dev.errors import DevError
from raybus.dev.process import last_line, running

_POLL_S = 0.1


def wait_until(ready: Callable[[], bool], what: str, deadline_s: float, run: Path, components: tuple[str, ...]) -> None:
    """Return when `ready()`; `components` (records in folder `run`) must stay alive meanwhile.

    Raises `DevError` with the last log line when one of them has ended or `deadline_s` seconds are over.
    """
    deadline = time.monotonic() + deadline_s
    while not ready():
        for name in components:
            log = run / f"{name}.log"
            if running(run, name) is None:
                raise DevError(f"{name} ended while we waited for {what}: {last_line(log)} (whole log: {log})")
        if time.monotonic() > deadline:
            logs = ", ".join(str(run / f"{name}.log") for name in components)
            raise DevError(f"{what} did not come within {deadline_s:.0f} s; see {logs}")
        time.sleep(_POLL_S)
