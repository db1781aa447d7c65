"""Invariants of leases, epochs and the view: who may write, and that the past is never revived (design §3)."""

from collections import deque

import msgspec

from raybus.api.decision import Delete
from raybus.api.kinds import ROOTS
from raybus.api.messages import H_EPOCH, H_GONE, H_RV, H_UID, Epoch, IntentMessage
from raybus.api.names import partition_of
from raybus.api.subjects import MARKER, lease_key, parse_root, parse_view
from raybus.bus.epochs import SERVICE_OF
from raybus.bus.leases import Lease
from raybus.bus.port import Message
from raybus.kube.port import Request
from raybus.testkit.api_errors import ApiError
from raybus.testkit.api_store import Change
from raybus.testkit.fake_api import FakeApi
from raybus.testkit.fake_bus import BusServer
from raybus.testkit.sim_ledger import Ledger, by_us, owner
from raybus.testkit.sim_process import Process

SETTLED = 3.0
"""Seconds after which everybody who runs has heard of a new epoch."""
SPAN, MOST = 20.0, 40
"""More requests of one kind for one object than `MOST` within `SPAN` seconds are a loop."""

_ROOT_KINDS = frozenset(ROOTS.values())
_CONTROLLER = {kind: controller for controller, kind in ROOTS.items()}
_INTENT = msgspec.json.Decoder(IntentMessage)
_LEASE = msgspec.json.Decoder(Lease)

Root = tuple[str, str, str]
"""(kind, namespace, name)."""


class FenceRules:
    """Watches the bus, the requests of appliers and their effects."""

    def __init__(self, ledger: Ledger, api: FakeApi, bus: BusServer) -> None:
        self._ledger, self._api, self._bus = ledger, api, bus
        self._epochs: dict[str, list[tuple[float, Epoch]]] = {}
        self._doomed: set[tuple[str, str]] = set()
        """(kind, UID) of everything that any Decision wanted deleted."""
        self._requests: dict[tuple[str, str], deque[float]] = {}
        self._before: dict[str, Message] = {}
        self._own: dict[tuple[str, str], str] = {}
        """(process, UID of a root) -> version that it wrote last."""
        self.processes: dict[str, Process] = {}
        api.store.observers.append(self._effect)
        bus.observers.append(self._stored)

    # ---- messages

    def _stored(self, stream: str, message: Message) -> None:
        match stream:
            case "INTENT":
                for intent in _INTENT.decode(message.data).intents:
                    if isinstance(intent, Delete):
                        self._doomed.add((intent.ref.kind, intent.uid))
            case "ctl":
                if _LEASE.decode(message.data).holder:
                    epoch = Epoch(self._bus.created, message.seq)
                    self._epochs.setdefault(message.subject, []).append((self._ledger.time(), epoch))
            case "VIEW":
                self._view(message)

    def _view(self, message: Message) -> None:
        """The message before it is no longer stored, so it is remembered here."""
        if parse_view(message.subject).kind == MARKER:
            # Whatever died between the loss of a store and its fill has left no tombstone.
            self._ledger.wiped_at = self._ledger.time()
        self._ledger.published.setdefault(message.headers.get(H_UID, ""), self._ledger.time())
        new = message.headers.get(H_RV, "")
        before = self._before.get(message.subject)
        self._before[message.subject] = message
        if before is None or not new or before.seq > message.seq:
            return
        old = before.headers.get(H_RV, "")
        if old and int(new) < int(old):
            self._ledger.violate("the past is not revived", f"{message.subject} went from {old} to {new}")
        same = message.headers.get(H_UID) == before.headers.get(H_UID)
        if same and before.headers.get(H_GONE) == "1" and H_GONE not in message.headers:
            self._ledger.violate("the past is not revived", f"{message.subject} was deleted and lives again")

    def wiped(self) -> None:
        """The store is gone, and with it what subjects held."""
        self._before = {}

    # ---- requests and effects

    def sent(self, process: Process, request: Request) -> None:
        """A process sends a request to Kubernetes."""
        if process.service != "applier" or request.method == "GET":
            return
        root = self._root(request)
        if root is None:
            return
        self._count(request)
        _, namespace, name = root
        partition = partition_of(namespace, name)
        lease = self._bus.streams["ctl"].last(lease_key("applier", partition))
        holder = _LEASE.decode(lease.data).holder if lease else ""
        if holder and holder != process.partitions.me:
            text = f"{process.life} sends {request.method} {request.path}, the lease is {holder}'s"
            self._ledger.violate("only the holder writes", text)
        self._check_epoch(process, root, request)

    def _check_epoch(self, process: Process, root: Root, request: Request) -> None:
        """Of the Decisions about this root in its hands, one has to be of an epoch that was current lately."""
        controller = _CONTROLLER[root[0]]
        epochs = []
        for message in process.bus.held.values():
            found = parse_root(message.subject)
            if (found[0], found[2], found[3]) == (controller, root[1], root[2]):
                epochs.append(Epoch.parse(message.headers[H_EPOCH]))
        if not epochs:
            return
        key = lease_key(SERVICE_OF[controller], partition_of(root[1], root[2]))
        known = [epoch for at, epoch in self._epochs.get(key, ()) if at < self._ledger.time() - SETTLED]
        if known and max(epochs) < known[-1]:
            text = (
                f"{process.life} sends {request.method} {request.path} for epoch {max(epochs)}, present is {known[-1]}"
            )
            self._ledger.violate("effects only with a current epoch", text)

    def _root(self, request: Request) -> Root | None:
        """Which root a write is about; None for Events and for children that are gone already."""
        try:
            kind, key, _ = self._api.target(request.path)
        except ApiError:
            return None
        if kind.kind == "Event":
            return None
        if kind.kind in _ROOT_KINDS and request.method in ("PUT", "PATCH"):
            return kind.kind, *key
        created = request.method == "POST"
        obj = msgspec.json.decode(request.body) if created else self._api.store.get(kind.kind, key)
        reference = owner(obj) if obj else None
        if reference is not None and reference["kind"] in _ROOT_KINDS:
            return reference["kind"], key[0], reference["name"]
        return None

    def _count(self, request: Request) -> None:
        name = request.path
        if request.method == "POST":
            name += "/" + str((msgspec.json.decode(request.body).get("metadata") or {}).get("name"))
        times = self._requests.setdefault((request.method, name), deque())
        times.append(self._ledger.time())
        while times[0] < times[-1] - SPAN:
            times.popleft()
        if len(times) > MOST:
            self._ledger.violate("nothing loops", f"{len(times)} times {request.method} {name} within {SPAN:.0f} s")
            times.clear()

    def _effect(self, change: Change) -> None:
        if not by_us(self._api.store) or change.before is None or change.kind == "Event":
            return
        if change.kind in _ROOT_KINDS:
            self._root_written(change)
        was_going = "deletionTimestamp" in change.before["metadata"]
        going = change.after is None or "deletionTimestamp" in change.after["metadata"]
        uid = change.before["metadata"]["uid"]
        if going and not was_going and (change.kind, uid) not in self._doomed:
            text = f"{change.kind} {change.key[1]} was deleted, which no Decision wanted of this object"
            self._ledger.violate("only what was meant is deleted", text)

    def _root_written(self, change: Change) -> None:
        """A status holds for the version that it was decided on, or for what the same applier made of that."""
        assert change.before is not None
        old, uid = change.before["metadata"]["resourceVersion"], change.before["metadata"]["uid"]
        writer = self._api.store.writer
        if change.after is not None and change.after.get("status") != change.before.get("status"):
            messages = [_INTENT.decode(message.data) for message in self.processes[writer].bus.held.values()]
            decided_on = {message.root.resource_version for message in messages if message.root.uid == uid}
            if decided_on and old not in decided_on and self._own.get((writer, uid)) != old:
                text = f"status of {change.kind} {change.key[1]} at {old} was decided on {sorted(decided_on)}"
                self._ledger.violate("a status fits its version", text)
        if change.after is not None:
            self._own[writer, uid] = change.after["metadata"]["resourceVersion"]
