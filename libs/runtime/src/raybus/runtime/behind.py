"""Messages that only a later release can read: said once each, counted, and named by readiness until they are read,
replaced or somebody else's (ADR 0105)."""

import asyncio

import structlog

from raybus.telemetry import metrics

log = structlog.get_logger()


class Behind:
    """What one service left alone of `stream`. `lasts`: seconds after which a message that was not met again counts as
    dealt with by another replica; 0.0 = never, it is replaced by one on the same subject."""

    def __init__(self, service: str, stream: str, lasts: float = 0.0) -> None:
        self._service, self._stream, self._lasts = service, stream, lasts
        self._met: dict[str, tuple[str, float]] = {}

    def met(self, subject: str, why: str) -> None:
        """A message that has to wait for a later release."""
        if subject not in self._met:
            metrics.NEWER_MESSAGES.labels(self._service, self._stream).inc()
            log.error("message left alone until this service is upgraded", subject=subject, why=why)
        self._met[subject] = why, asyncio.get_running_loop().time()

    def replaced(self, subject: str) -> None:
        """There is another message on this subject."""
        if self._met:
            self._met.pop(subject, None)

    def leave(self, prefixes: tuple[str, ...]) -> None:
        """Subjects that begin so are read anew, or by another replica."""
        for subject in [subject for subject in self._met if subject.startswith(prefixes)]:
            del self._met[subject]

    def problem(self) -> str:
        """Why this replica is not ready, "" if it can read everything."""
        if self._lasts:
            since = asyncio.get_running_loop().time() - self._lasts
            self._met = {subject: entry for subject, entry in self._met.items() if entry[1] > since}
        if not self._met:
            return ""
        subject, (why, _) = next(iter(self._met.items()))
        return (
            f"{len(self._met)} messages of {self._stream} wait for a later release of {self._service}; {subject}: {why}"
        )
