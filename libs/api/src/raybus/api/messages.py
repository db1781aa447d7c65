"""What travels on the bus: the bodies and headers of INTENT, ASK, facts, results and TIMELINE (design §3)."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from raybus.api.decision import Ask, CreatePods, Intent, Json, Note, Ref, Why
from raybus.api.schema import H_SCHEMA as H_SCHEMA
from raybus.api.schema import SCHEMA as SCHEMA
from raybus.api.times import Instant

# Header names.
H_RV, H_UID, H_AT, H_TRACE, H_GONE = "K8s-RV", "K8s-UID", "Observed-At", "traceparent", "Gone"
H_EPOCH, H_VIEW_SEQ = "Epoch", "View-Seq"
H_ROOT_SEQ, H_RESULT_SEQ = "Root-Seq", "Result-Seq"
"""Of an INTENT, to spare the applier two reads: the VIEW sequence of the root itself, and `0` when the root has no
result. Either may be missing; both are only expectations, as compare-and-set finds out."""

TOMBSTONE_TTL = 24 * 3600
"""Seconds that a tombstone stays in VIEW, and so that a pod name rests (design §3, "Names")."""


class Epoch(NamedTuple):
    """(creation time of the `ctl` bucket in ns, revision of the lease): grows also over a wiped bus (design §3)."""

    created: int
    revision: int

    def __str__(self) -> str:
        return f"{self.created}:{self.revision}"

    @classmethod
    def parse(cls, text: str) -> Epoch:
        """Raises ValueError when `text` is not `<int>:<int>`."""
        created, revision = text.split(":")
        return cls(int(created), int(revision))


class Root(Struct, frozen=True, kw_only=True):
    """The custom resource that a message is about, as the decision saw it."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    generation: int = 0

    @property
    def ref(self) -> Ref:
        """The root as a plain reference."""
        return Ref(self.kind, self.namespace, self.name)


class IntentMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A Decision to carry out, in this order: `finalizers_first` (whole list), `status` (whole), `intents` in
    parallel, `finalizers_last` (whole list), `notes` (design §3, "Applier"). Unset parts are left alone."""

    root: Root
    finalizers_first: tuple[str, ...] | None = None
    status: Json | None = None
    urgent: bool = False
    intents: tuple[Intent, ...] = ()
    finalizers_last: tuple[str, ...] | None = None
    notes: tuple[Note, ...] = ()


class AskMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a root wants from Ray (`asks`, for the prober) and wants to know of (`needs`, for the watcher)."""

    root: Root
    asks: tuple[Ask, ...] = ()
    needs: tuple[Ref, ...] = ()


class JobFact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What Ray said of a job: `status` verbatim; times are milliseconds since the epoch, 0 = not said."""

    status: str
    message: str = ""
    start_time: int = 0
    end_time: int = 0


class Fact(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to an ask, in the view as (FACT, ask id).

    `begun`: when the call began (a deadline needs one begun after it, design §3), `at`: when it ended.
    `outcome`: `ok` = Ray answered; `missing` = Ray does not know the job; `refused` = Ray answered and will not
    (`text` says why); `unreachable` = no answer (`text` says why, for people). `job` comes with `ok` of a probe.
    `head`: pod UID of the head that was asked.
    """

    id: str
    head: str
    begun: Instant
    at: Instant
    outcome: Literal["ok", "missing", "refused", "unreachable"]
    job: JobFact | None = None
    text: str = ""


class Presence(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A needed object, in the view as (PRESENCE, `<Kind>/<name>`): whether it exists and its key names, no values."""

    ref: Ref
    exists: bool
    keys: tuple[str, ...] = ()
    at: Instant = Instant(0.0)


class Refusal(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An intent that the API server refused for good (403, 422, quota, name taken).

    `intent`: `fingerprint` of the intent; left out of later decisions until `retry_at` unless its content changes.
    `ref`: the object; `code` and `reason` as in the Status answer (`reason` = `name-taken` for a foreign object).
    """

    intent: str
    ref: Ref
    verb: str
    code: int
    reason: str
    message: str
    at: Instant
    retry_at: Instant
    attempts: int = 1


class Drop(Struct, frozen=True, kw_only=True):
    """A Decision that was not carried out (to the end): the present owner publishes its own again."""

    cause: Literal["epoch", "conflict", "view", "invalid"]
    at: Instant
    view_seq: int
    text: str = ""


class Result(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All present refusals of a root and the last drop, in the view as (RESULT, `applier`)."""

    root_uid: str
    refusals: tuple[Refusal, ...] = ()
    drop: Drop | None = None


class TimelineEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that happened to a root, and why; no values of env, args or Secrets.

    `did`: short sentences such as `create Pod default/x-head-abcde`; `phase`: "" or `Old -> New` of the root's main
    state; `trace`: hexadecimal trace id, "" without tracing.
    """

    at: Instant
    service: str
    root: Root
    phase: str = ""
    did: tuple[str, ...] = ()
    because: tuple[Why, ...] = ()
    view_seq: int = 0
    trace: str = ""


def fingerprint(intent: Intent) -> str:
    """A short hash of an intent's content: equal content, equal fingerprint.

    Pods of one template count as one intent whatever their names: while a quota refuses two of three pods, the
    remaining two are the same wish, not a new one.
    """
    content = (intent.namespace, intent.template) if isinstance(intent, CreatePods) else intent
    return hashlib.blake2s(msgspec.json.encode(content, order="deterministic"), digest_size=8).hexdigest()
