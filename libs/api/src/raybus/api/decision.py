"""What a controller decides about one root (design §4): complete, so that the newest replaces every older one."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from raybus.api.reasons import Reason
from raybus.api.times import Instant

Json = dict[str, Any]
"""A Kubernetes object or a part of one as JSON."""


class Ref(Struct, frozen=True, order=True):
    """A named object: `kind` as in `kinds.BY_KIND`."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Note(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One Kubernetes Event (events.k8s.io/v1) about the root: what it says and why. Values of env, args and Secrets
    never belong here. `reporter`: the reporting controller, "" = the one that decides about the root."""

    type: Literal["Normal", "Warning"]
    reason: Reason
    action: str
    text: str
    related: Ref | None = None
    reporter: str = ""


class Why(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One reason of a decision, as `raybus explain` prints it: which object, what is the matter, what to do next."""

    reason: Reason
    text: str
    about: Ref | None = None
    next_step: str = ""


class Create(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="create"):
    """POST `body`. An object of that name that is ours counts as done, a foreign one is refused (`name-taken`).
    `taken`: the note for that case, if it is not `failed`."""

    ref: Ref
    body: Json
    done: Note | None = None
    failed: Note | None = None
    taken: Note | None = None


class PodSlot(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One pod of a `CreatePods`: its name and the labels that differ from the template."""

    name: str
    labels: dict[str, str] = {}


class CreatePods(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="create-pods"):
    """POST one pod per slot from one whole Pod `template` (metadata.name missing); at most 100 slots.

    `done` and `failed` are sent once for all pods; `{names}` in their text is replaced by the pods they speak of.
    """

    namespace: str
    template: Json
    slots: tuple[PodSlot, ...]
    done: Note | None = None
    failed: Note | None = None


class Apply(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="apply"):
    """Server-side apply of exactly what we own of a kind that changes later (Service, Ingress, Role, ...)."""

    ref: Ref
    body: Json
    done: Note | None = None
    failed: Note | None = None


class Patch(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="patch"):
    """JSON patch (RFC 6902 operations) of an existing object, guarded by UID and resourceVersion."""

    ref: Ref
    uid: str
    resource_version: str
    operations: tuple[Json, ...]
    done: Note | None = None
    failed: Note | None = None


class Delete(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="delete"):
    """DELETE with the UID as precondition; an object already gone counts as done."""

    ref: Ref
    uid: str
    propagation: Literal["Background", "Foreground"] = "Background"
    done: Note | None = None
    failed: Note | None = None


class GenerateSecret(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="generate-secret"):
    """POST the Secret `body` with a random value for each of `keys`, unless one of that name is there, whosever it is.

    The applier draws the values (the base64 text of 32 random bytes each): none ever travels on the bus (design §3,
    "No secret on the bus"; contract raycluster-objects §5.6).
    """

    ref: Ref
    body: Json
    keys: tuple[str, ...]
    done: Note | None = None
    failed: Note | None = None


Intent = Create | GenerateSecret | CreatePods | Apply | Patch | Delete


class Head(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which Ray head an ask is for: the identity that an action is bound to, and where its dashboard answers.

    `pod_uid` distinguishes a head from its replacement. `url`: `http://host:8265` as seen from inside the cluster.
    `token_secret`: name of the Secret with `auth_token`, "" without token authentication.
    """

    cluster: str
    pod_uid: str
    service: str
    url: str
    token_secret: str = ""


class ProbeJob(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="probe-job"):
    """Poll `GET /api/jobs/<job_id>`; confirm unchanged answers at least every `fresh` seconds."""

    id: str
    head: Head
    job_id: str
    fresh: float = 3.0


class SubmitJob(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="submit-job"):
    """POST `request` (the dashboard's job body) once per (id, head); Ray refuses a known submission id."""

    id: str
    head: Head
    job_id: str
    request: Json


class StopJob(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="stop-job"):
    """POST `/api/jobs/<job_id>/stop` once per (id, head)."""

    id: str
    head: Head
    job_id: str


Ask = ProbeJob | SubmitJob | StopJob


class Decision(Struct, frozen=True, kw_only=True):
    """Everything that is to happen for one root (design §4).

    `status`: the whole next status as JSON, None = leave it alone; the runtime compares it with the stored one.
    `finalizers`: those of ours that the root should carry (None = leave them); stored before any child exists,
    removed last. `progress`: the status change only counts progress, so it may wait for a second of quiet.
    `urgent`: deletes or a terminal status: the applier sends these first.
    `wake_at`: the only timer. `needs`: objects that no watch selects and whose presence this decision depends on.
    """

    status: Json | None = None
    finalizers: frozenset[str] | None = None
    intents: tuple[Intent, ...] = ()
    asks: tuple[Ask, ...] = ()
    needs: tuple[Ref, ...] = ()
    wake_at: Instant | None = None
    notes: tuple[Note, ...] = ()
    because: tuple[Why, ...] = ()
    progress: bool = False
    urgent: bool = False


NOTHING = Decision()
"""The decision of a controller that has nothing to say about a root (for example one that is managed elsewhere)."""
