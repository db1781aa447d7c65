"""One process at a time builds a tool or changes a cluster."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from raybus.dev.progress import say


@contextmanager
def exclusive(path: Path, what: str) -> Iterator[None]:
    """Hold the lock file `path`; `what` names the wait for the person at the terminal.

    The kernel lets go of the lock when its holder ends, however it ends.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another process that is {what} …")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
