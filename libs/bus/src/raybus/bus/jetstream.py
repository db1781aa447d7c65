"""JetStream's wire form: requests, answers and the metadata in reply subjects; pure.

nats-py's own JetStream layer is not used: it hides lost pulls and consumer resets (ADR 0030, 0031).
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from raybus.api.times import Instant
from raybus.bus.port import Message

API = "$JS.API"
EXPECT_SUBJECT_SEQ, TTL = "Nats-Expected-Last-Subject-Sequence", "Nats-TTL"
SIZE = "Nats-Msg-Size"
"""Header of a message that is delivered without its body."""
STATUS, DESCRIPTION = "Status", "Description"

WRONG_LAST_SEQUENCE = 10071
STREAM_NOT_FOUND = 10059
STREAM_NAME_IN_USE = 10058
FULL = frozenset({10047, 10023, 10077, 10028})
"""Error codes of a store that has reached a limit (account's storage, stream's bytes or messages)."""
PASSING = frozenset({10008, 10009, 10039, 10076})
"""Error codes that an election or a restart explains: system temporarily unavailable, no leader, not enabled yet."""


class ApiError(Struct, frozen=True):
    """`code` is like HTTP's, `err_code` says exactly what."""

    code: int = 0
    err_code: int = 0
    description: str = ""


class Answer(Struct):
    """The part that all answers of the API share; `error` is None when it worked."""

    error: ApiError | None = None


class PubAck(Answer):
    """The answer to a published message."""

    stream: str = ""
    seq: int = 0


class StreamState(Struct, frozen=True):
    """What a stream holds. `subjects`: messages by subject, if a filter of subjects was given, one page of them."""

    subjects: dict[str, int] | None = None


class StreamInfo(Answer):
    """The answer of STREAM.INFO, CREATE and UPDATE; `created` is RFC 3339 with nanoseconds, `total` the number of
    subjects that match a given filter."""

    created: str = ""
    total: int = 0
    config: dict[str, Any] = {}
    state: StreamState = StreamState()


class ConsumerInfo(Answer):
    """The answer of CONSUMER.CREATE; `num_pending`: stored messages that it will deliver."""

    name: str = ""
    num_pending: int = 0


class ApiLevel(Struct, frozen=True):
    """`level` 0: the server is older than 2.11 and does not say."""

    level: int = 0


class AccountInfo(Answer):
    """The answer of $JS.API.INFO."""

    api: ApiLevel = ApiLevel()


class Delivery(NamedTuple):
    """What the reply subject of a delivered message says: sequences in the stream and of the consumer, time in ns,
    and how many messages the consumer has yet to deliver."""

    stream_seq: int
    consumer_seq: int
    stored_ns: int
    pending: int


def delivery(reply: str) -> Delivery:
    """Parse `$JS.ACK.[<domain>.<account>.]<stream>.<consumer>.<delivered>.<sseq>.<cseq>.<ns>.<pending>[.<token>]`.

    Raises ValueError for any other subject.
    """
    tokens = reply.split(".")
    at = 5 if len(tokens) == 9 else 7
    if len(tokens) < at + 4:
        raise ValueError(f"not the reply subject of a delivered message: {reply!r}")
    return Delivery(int(tokens[at]), int(tokens[at + 1]), int(tokens[at + 2]), int(tokens[at + 3]))


def own_headers(headers: dict[str, str] | None) -> dict[str, str]:
    """The headers, just received, without those that JetStream keeps of a publish or adds to a delivery."""
    if headers is None:
        return {}
    for own in (EXPECT_SUBJECT_SEQ, TTL, SIZE):
        headers.pop(own, None)
    return headers


def delivered(subject: str, data: bytes, headers: dict[str, str] | None, about: Delivery) -> Message:
    """A message that a consumer delivered."""
    return Message(
        subject=subject,
        data=data,
        headers=own_headers(headers),
        seq=about.stream_seq,
        stored_at=Instant(about.stored_ns / 1e9),
    )


def fetched(data: bytes, headers: dict[str, str]) -> Message:
    """A message that DIRECT.GET answered. Raises KeyError, ValueError when the answer lacks JetStream's headers."""
    stored_at = Instant(nanoseconds(headers.pop("Nats-Time-Stamp")) / 1e9)
    subject, seq = headers.pop("Nats-Subject"), int(headers.pop("Nats-Sequence"))
    headers.pop("Nats-Stream", None)
    return Message(subject=subject, data=data, headers=own_headers(headers), seq=seq, stored_at=stored_at)


def nanoseconds(text: str) -> int:
    """Nanoseconds since the epoch of an RFC 3339 time in UTC with up to nine fractional digits. Raises ValueError."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    seconds = int(datetime.fromisoformat(whole).replace(tzinfo=UTC).timestamp())
    return seconds * 10**9 + int(fraction.ljust(9, "0")[:9] or 0)


def ns(seconds: float) -> int:
    """A duration as JetStream writes it."""
    return int(seconds * 1e9)


def encode(body: Mapping[str, Any]) -> bytes:
    """A request's body."""
    return msgspec.json.encode(body)
