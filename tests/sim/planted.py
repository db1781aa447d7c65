"""Bugs to be found: each takes one fence or rule of the design away, from outside, in the process that calls it.

They are why a green simulation means something: `test_sim.py` shows that each is found.
"""

import random
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from raybus.api import names as api_names
from raybus.api.messages import JobFact
from raybus.applier import intents, root
from raybus.applier.calls import Lane
from raybus.applier.carry import Carrier
from raybus.applier.echo import Echo
from raybus.applier.queue import Queue
from raybus.bus.epochs import Epochs
from raybus.bus.partitions import Partitions
from raybus.cluster_ctl import gather as cluster_gather
from raybus.cluster_ctl import names as cluster_names
from raybus.job_ctl import entry, guards, ray
from raybus.job_ctl import observe as job_observe
from raybus.kube import watch
from raybus.kube.port import Request
from raybus.runtime import compose
from raybus.runtime.partition import Partition
from raybus.testkit.fake_bus import FakeBus
from raybus.watcher.publisher import Publisher
from raybus.watcher.session import Session

# mypy: disable-error-code="method-assign,assignment"
# Planting a bug is to put another function in the place of the right one.


def no_uid_precondition() -> None:
    """Deletes go by name alone (design §3, "Deletes carry the UID")."""
    right = intents.write.delete

    def delete(ref: Any, uid: str, propagation: str = "Background") -> Request:
        request = right(ref, uid, propagation)
        options = msgspec.json.decode(request.body)
        del options["preconditions"]
        return msgspec.structs.replace(request, body=msgspec.json.encode(options))

    intents.write.delete = delete


def no_status_version() -> None:
    """A status replaces whatever is there (design §3, "the version is the fence")."""
    right = root.write.put_status

    def put_status(ref: Any, uid: str, resource_version: str, status: Any) -> Request:
        request = right(ref, uid, resource_version, status)
        body = msgspec.json.decode(request.body)
        del body["metadata"]["resourceVersion"]
        return msgspec.structs.replace(request, body=msgspec.json.encode(body))

    root.write.put_status = put_status


def no_fill_marker() -> None:
    """A controller decides on a view that is not filled yet."""

    def opened(self: Partition) -> None:
        self.problem = ""
        for key in self.cache.roots:
            self._mark(key)

    Partition._open = opened


def no_echo() -> None:
    """The applier does not tell the view what it has written."""

    async def silent(self: Echo, *_: Any, **__: Any) -> int:
        return 0

    Echo.written, Echo.gone = silent, silent


def no_epoch_check() -> None:
    """Whoever decided, however long ago, is obeyed."""

    async def judge(self: Epochs, *_: Any) -> str:
        return "current"

    Epochs.judge = judge


def no_lease_check() -> None:
    """The applier sends whatever it has in hand."""

    class Always:
        def owns(self, partition: int) -> bool:
            return True

        def fresh(self) -> bool:
            return True

    right = Lane.__init__

    def begin(self: Lane, calls: Any, *rest: Any) -> None:
        calls.lease = Always()
        right(self, calls, *rest)

    Lane.__init__ = begin


def no_view_seq_check() -> None:
    """A Decision made before the last effect was known is carried out."""

    async def is_outdated(self: Carrier, *_: Any) -> bool:
        return False

    Carrier._is_outdated = is_outdated


def random_names() -> None:
    """Two controllers choose different names for one pod."""

    def pod_names(prefix: str, *_: Any) -> Iterator[str]:
        while True:
            yield prefix + "".join(random.choices(api_names.ALPHABET, k=5))

    cluster_names.pod_names = pod_names


def random_attempts() -> None:
    """Each decision names the cluster of a RayJob anew."""
    entry.suffix = lambda *_: "".join(random.choices(api_names.ALPHABET, k=5))


def reused_names() -> None:
    """A pod gets the name of one that is gone."""
    right = cluster_gather.gather

    def gather(view: Any) -> Any:
        found = right(view)
        return None if found is None else msgspec.structs.replace(found, resting=frozenset())

    from raybus.cluster_ctl import controller

    controller.gather = gather


def blind_publish() -> None:
    """VIEW is written without looking at what it holds."""
    right = FakeBus.put

    async def put(self: FakeBus, stream: Any, subject: str, data: bytes, headers: Any, **more: Any) -> int:
        if stream == "VIEW":
            more["expect"] = None
        return await right(self, stream, subject, data, headers, **more)

    FakeBus.put = put


def no_tombstones() -> None:
    """What is gone stays in the view."""
    right = Publisher._put

    async def put(self: Publisher, pending: Any, *rest: Any) -> None:
        if pending.item.data:
            await right(self, pending, *rest)

    Publisher._put = put


def no_relist_diff() -> None:
    """What vanished while a watch had lost its place is not reported."""
    watch._vanished = lambda *_: []


def old_lists() -> None:
    """A wiped view is filled from what the watches have shown so far."""

    async def list_anew(self: Session) -> None:
        return None

    Session._list_anew = list_anew


def silence_is_failure() -> None:
    """A dashboard that does not answer counts as a failed job."""
    right = job_observe._with_ray

    def with_ray(view: Any, status: Any) -> Any:
        fact = ray.probe(view)
        if fact is not None and fact.outcome == "unreachable":
            fact = msgspec.structs.replace(fact, outcome="ok", job=JobFact(status="FAILED"))
            return msgspec.structs.replace(status, job_status="FAILED", message=fact.text)
        return right(view, status)

    job_observe._with_ray = with_ray


def early_submit() -> None:
    """A job is submitted to whatever head does not know it, whatever the stored status says."""
    right = ray.asks

    def asks(view: Any, by_http: bool, soon: bool) -> Any:
        fresh = msgspec.structs.replace(view.status, job_status="")
        asked = msgspec.structs.replace(view, job=msgspec.structs.replace(view.job, status=fresh))
        return right(asked, by_http, soon)

    ray.asks = asks
    ray.on_stored_head = lambda view: True


def no_fresh_look() -> None:
    """A deadline strikes without anybody having looked after it."""
    ray.looked_after = lambda s, deadline: bool(s.now >= deadline)
    guards.ray.looked_after = ray.looked_after


def refusals_loop() -> None:
    """What the API server refuses is asked for again at once."""
    compose._refused = lambda *_: {}
    from raybus.applier import carry

    carry.resting = lambda *_: 0.0


def late_finalizer() -> None:
    """The finalizer is stored after the children."""
    right = compose._finalizers

    def finalizers(stored: Any, wanted: Any) -> Any:
        first, last = right(stored, wanted)
        return None, last or first

    compose._finalizers = finalizers


def early_acknowledgement() -> None:
    """A Decision is taken off the queue before it is carried out."""
    right = Queue.offer

    async def offer(self: Queue, job: Any, memory: Any) -> None:
        await job.work.done()
        await right(self, job, memory)

    Queue.offer = offer


def no_first_decision() -> None:
    """A controller that takes a partition waits for changes instead of deciding all roots once."""

    def opened(self: Partition) -> None:
        self.problem = "" if self.cache.marker == self.created else "not filled"

    Partition._open = opened


def impatient_takeover() -> None:
    """A lease is taken from its holder without having listened for it."""
    Partitions._silent = lambda self, replica, now: True


BUGS: dict[str, Callable[[], None]] = {
    plant.__name__: plant
    for plant in (
        no_uid_precondition,
        no_status_version,
        no_fill_marker,
        no_echo,
        no_epoch_check,
        no_lease_check,
        no_view_seq_check,
        random_names,
        random_attempts,
        reused_names,
        blind_publish,
        no_tombstones,
        no_relist_diff,
        old_lists,
        silence_is_failure,
        early_submit,
        no_fresh_look,
        refusals_loop,
        late_finalizer,
        early_acknowledgement,
        no_first_decision,
        impatient_takeover,
    )
}
"""Name -> how to plant it."""
