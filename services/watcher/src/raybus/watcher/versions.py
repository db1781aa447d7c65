"""The order of resourceVersions, and which of two states of a subject is the newer one (design §3); pure.

A subject holds what its last writer saw. Writers are the watchers, one of them active, and the applier, which echoes
its own writes. Compare-and-set makes each writer look at what it replaces; these rules say who gives way.
"""

from msgspec import Struct

from raybus.api.messages import H_AT, H_EPOCH, H_GONE, H_RV, H_UID, Epoch
from raybus.bus.port import Message

DELETED = "1"
"""`Gone` header of the applier: the API server has deleted this object. Its UID never comes back."""
LEFT = "left"
"""`Gone` header of the watcher: no longer in this view (deleted, or it belongs elsewhere now; it may return)."""


class Held(Struct, frozen=True):
    """What a subject holds. `gone`: "" = an object, else the header's value. `epoch`: of the watcher that wrote it."""

    seq: int
    uid: str
    version: str
    gone: str = ""
    epoch: Epoch | None = None


class Item(Struct, frozen=True):
    """What a subject should hold: `data` of an object (or presence) at `version`, b"" when it is absent."""

    subject: str
    uid: str
    version: str
    data: bytes


def held_by(message: Message) -> Held:
    """What a message says about its subject. A presence has no resourceVersion: its time takes the place."""
    headers = message.headers
    gone = headers.get(H_GONE, "")
    version = headers.get(H_RV) or time_version(float(headers.get(H_AT, "0")))
    epoch = Epoch.parse(headers[H_EPOCH]) if H_EPOCH in headers else None
    return Held(message.seq, headers.get(H_UID, ""), version, gone, epoch)


def time_version(at: float) -> str:
    """A time as something that compares like a resourceVersion."""
    return str(round(at * 1e6))


def older(version: str, other: str) -> bool:
    """Whether `version` is the earlier one: by number, as Kubernetes guarantees since 1.35; opaque ones never are."""
    return version.isdigit() and other.isdigit() and int(version) < int(other)


def newer(version: str, other: str) -> bool:
    """Whether `version` is the later one; of opaque ones all that can be said is that they differ."""
    return int(version) > int(other) if version.isdigit() and other.isdigit() else version != other


def is_news(item: Item, held: Held | None) -> bool:
    """Whether `item` should replace what its subject holds.

    An object that left a view may come back into it unchanged, so at the same version; an equal version of a living
    object says nothing new, an older one is the past.
    """
    if not item.data:
        return held is not None and not held.gone and (held.uid == item.uid or newer(item.version, held.version))
    if held is None:
        return True
    if held.gone == DELETED and held.uid == item.uid:
        return False
    if held.gone:
        return not older(item.version, held.version)
    return newer(item.version, held.version)
