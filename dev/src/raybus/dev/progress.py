"""Progress on the terminal: what is being done, how long such a step takes, how long it took."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

console = Console(stderr=True, highlight=False)


def say(text: str) -> None:
    """One line for the person at the terminal."""
    console.print(text, markup=False, soft_wrap=True)


@contextmanager
def step(what: str, expected_s: float | None = None) -> Iterator[None]:
    """Show `what` while the body runs, and its duration afterwards.

    `expected_s`: seconds such a step takes on a small machine; shown when it is long enough to wonder.
    """
    hint = f" (about {expected_s:.0f} s)" if expected_s and expected_s >= 10 else ""
    begun = time.monotonic()
    if not console.is_terminal:
        say(f"{what}{hint} …")
    try:
        with console.status(f"{what}{hint} …"):
            yield
    except BaseException:
        say(f"{what} … failed after {time.monotonic() - begun:.1f} s")
        raise
    say(f"{what} … {time.monotonic() - begun:.1f} s")
