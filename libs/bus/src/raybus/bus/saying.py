"""What is being waited for, in the log every few seconds."""

import time

import structlog

SAY_EVERY = 5.0
"""Seconds between two lines."""

log = structlog.get_logger()


class Saying:
    """Says the first time, then at most every SAY_EVERY seconds."""

    def __init__(self) -> None:
        self._said = float("-inf")

    def say(self, event: str, **values: str) -> None:
        """One warning, unless the last one is too recent."""
        now = time.monotonic()
        if now - self._said > SAY_EVERY:
            self._said = now
            log.warning(event, **values)
