"""A controller as the runtime sees it: a name, pure functions and tables of them (design §4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from raybus.api.decision import Decision
from raybus.api.times import Instant
from raybus.api.view import View
from raybus.runtime.root_gauges import NO_GAUGES, RootGauges

V = TypeVar("V")
K = TypeVar("K")

Decoder = Callable[[bytes], Any]
"""Makes the few typed fields that decisions read from the raw bytes of one message, once, when it arrives.

Raises msgspec.DecodeError or msgspec.ValidationError for bytes it cannot read; the runtime reports these."""


@dataclass(frozen=True)
class Controller(Generic[V, K]):
    """One controller.

    `name`: one of `subjects.CONTROLLERS`. `decoders`: view kind token -> decoder; kinds without one are ignored
    (FACT, RESULT and PRESENCE are decoded by the runtime into `messages.Fact`, `Result`, `Presence`).
    `gather`: the root's view -> a frozen, typed value, or None when the root object is not there (nothing is decided).
    `decide`: pure. `knobs`: what the settings say, the third argument of `decide`. `gauges`: what `/metrics` shows of
    each root.
    """

    name: str
    decoders: Mapping[str, Decoder]
    gather: Callable[[View], V | None]
    decide: Callable[[V, Instant, K], Decision]
    knobs: K
    gauges: RootGauges[Any] = NO_GAUGES
