"""What the bus in memory stores: one stream with its last sequences, limits per subject, and message TTLs."""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache

from raybus.api.times import Instant
from raybus.bus.port import Conflict, Message


@lru_cache(maxsize=200_000)
def matches(pattern: str, subject: str) -> bool:
    """Whether `subject` matches the NATS filter `pattern` (`*` = one token, `>` at the end = one or more)."""
    wanted, got = pattern.split("."), subject.split(".")
    for index, token in enumerate(wanted):
        if token == ">":
            return len(got) > index
        if index >= len(got) or token not in ("*", got[index]):
            return False
    return len(wanted) == len(got)


class Stream:
    """One stream: at most `per_subject` messages a subject (the oldest go), in stream order.

    Sequences never repeat within one life of the stream; a subject without a message has sequence 0.
    """

    def __init__(self, now: Callable[[], Instant], per_subject: int = 1) -> None:
        self._now = now
        self._per_subject = per_subject
        self._seq = 0
        self._messages: dict[int, Message] = {}
        self._subjects: dict[str, deque[int]] = {}
        self._expiries: list[tuple[float, int]] = []
        self.created = now()

    def put(
        self, subject: str, data: bytes, headers: Mapping[str, str], expect: int | None, ttl: int | None
    ) -> Message:
        """Store a message. Raises Conflict when the subject's last sequence is not `expect`."""
        last = self.last_seq(subject)
        if expect is not None and expect != last:
            raise Conflict(f"{subject}: last sequence is {last}, not {expect}")
        self._seq += 1
        message = Message(
            subject=subject, data=bytes(data), headers=dict(headers), seq=self._seq, stored_at=self._now()
        )
        self._messages[self._seq] = message
        present = self._subjects.setdefault(subject, deque())
        present.append(self._seq)
        while len(present) > self._per_subject:
            del self._messages[present.popleft()]
        if ttl is not None:
            heapq.heappush(self._expiries, (self._now() + ttl, self._seq))
        return message

    def last_seq(self, subject: str) -> int:
        """The last sequence of `subject`, 0 if it holds nothing."""
        self._expire()
        present = self._subjects.get(subject)
        return present[-1] if present else 0

    def last(self, subject: str) -> Message | None:
        """The last message of `subject`."""
        return self._messages.get(self.last_seq(subject))

    def get(self, seq: int) -> Message | None:
        """The message with sequence `seq`, None if it is no longer stored."""
        self._expire()
        return self._messages.get(seq)

    def remove(self, seq: int) -> None:
        """Forget one message (acknowledged, expired); one that is not there is no error."""
        message = self._messages.pop(seq, None)
        if message is not None:
            present = self._subjects[message.subject]
            present.remove(seq)
            if not present:
                del self._subjects[message.subject]

    def latest(self, patterns: Iterable[str]) -> Iterator[Message]:
        """The last message of each subject that matches one of `patterns`, in stream order."""
        self._expire()
        wanted = tuple(patterns)
        last = sorted(
            present[-1] for subject, present in self._subjects.items() if any(matches(p, subject) for p in wanted)
        )
        return iter([self._messages[seq] for seq in last])

    def all(self, pattern: str) -> list[Message]:
        """Every stored message whose subject matches `pattern`, in stream order (what a test asserts on)."""
        self._expire()
        return [message for message in self._messages.values() if matches(pattern, message.subject)]

    def _expire(self) -> None:
        while self._expiries and self._expiries[0][0] <= self._now():
            self.remove(heapq.heappop(self._expiries)[1])
