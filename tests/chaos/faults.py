"""The faults: a table of kinds, and what each does to a running stack.

A slow disk is played by stopping nats-server for 200 ms at a time: its clients see what an fsync of that length would
make them see, a server that answers nothing meanwhile.
"""

import asyncio
import itertools
import random
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

import bus_admin
from api import Api, Away
from judge import Thaw
from leases import Outage
from proxies import Proxies
from world import ApiServer, ChaosStack

from raybus.dev.stack import NATS, SERVICES, process_name, readiness

PULSE = 0.2
API_PATIENCE = 120.0
START_PATIENCE = 20.0
"""Seconds in which a process that was started again should be ready; it need not be, the bus may be away."""


class Fault(NamedTuple):
    """One fault to come. `target`: a service, or "" for the bus and the API server."""

    kind: str
    target: str
    seconds: float


class Struck(NamedTuple):
    """One fault that was. Times by the wall clock; `target`: the process, where it was one."""

    kind: str
    target: str
    began: float
    ended: float


@dataclass
class Hands:
    """What faults are made with, and what they leave for the judge. `disturbed`: when the bus was not well;
    `away`: its servers that stay away until the end."""

    stack: ChaosStack
    proxies: Proxies
    api: Api
    api_server: ApiServer
    struck: list[Struck] = field(default_factory=list)
    outages: list[Outage] = field(default_factory=list)
    thaws: list[Thaw] = field(default_factory=list)
    disturbed: list[tuple[float, float]] = field(default_factory=list)
    away: set[int] = field(default_factory=set)
    _turns: dict[str, Iterator[str]] = field(default_factory=dict)

    def next_replica(self, service: str) -> str:
        """Each replica of a service in turn."""
        turns = self._turns.setdefault(service, itertools.cycle(self.stack.names(service)))
        return next(turns)

    @contextmanager
    def disturbing(self) -> Iterator[None]:
        """Meanwhile the bus is not well, and nobody can be expected to take over in time."""
        began = time.time()
        try:
            yield
        finally:
            self.disturbed.append((began, time.time()))

    def servers(self) -> list[int]:
        """The servers of the bus that are not away for good."""
        return [n for n in range(self.stack.bus_servers) if n not in self.away]

    def server_name(self, number: int) -> str:
        return process_name(NATS, number)


async def kill(hands: Hands, fault: Fault) -> str:
    """SIGKILL a replica, and start it again some seconds later."""
    name = hands.next_replica(fault.target)
    alone, at = await _is_alone(hands, name), time.time()
    await asyncio.to_thread(hands.stack.kill, name)
    await asyncio.sleep(fault.seconds)
    await asyncio.to_thread(hands.stack.restart, name)
    hands.outages += [] if alone else [Outage(name, at)]
    end = time.monotonic() + START_PATIENCE
    while await _why_not_ready(hands, name) and time.monotonic() < end:
        await asyncio.sleep(0.5)
    return name


async def freeze(hands: Hands, fault: Fault) -> str:
    """SIGSTOP a replica, and let it go on some seconds later."""
    name = hands.next_replica(fault.target)
    alone, at = await _is_alone(hands, name), time.time()
    hands.stack.signal(name, signal.SIGSTOP)
    try:
        await asyncio.sleep(fault.seconds)
    finally:
        thawed = time.time()
        hands.stack.signal(name, signal.SIGCONT)
    hands.thaws.append(Thaw(name, thawed))
    hands.outages += [] if alone else [Outage(name, at)]
    return name


async def kill_bus(hands: Hands, fault: Fault) -> str:
    """SIGKILL every nats-server, and start them again on what they had stored."""
    with hands.disturbing():
        await _end_bus(hands)
        await asyncio.sleep(fault.seconds)
        await _start_bus(hands)
    return NATS


async def wipe(hands: Hands, fault: Fault) -> str:
    """SIGKILL every nats-server, and start them again on nothing."""
    with hands.disturbing():
        await _end_bus(hands)
        for number in hands.servers():
            await asyncio.to_thread(shutil.rmtree, hands.stack.store(number), True)
        await asyncio.sleep(fault.seconds)
        await _start_bus(hands)
        await asyncio.sleep(5)
    return NATS


async def kill_leader(hands: Hands, fault: Fault) -> str:
    """SIGKILL the nats-server that leads VIEW, and start it again some seconds later."""
    with hands.disturbing():
        number = await bus_admin.leader(hands.stack.nats_url, hands.servers())
        await asyncio.to_thread(hands.stack.kill, hands.server_name(number))
        await asyncio.sleep(fault.seconds)
        await asyncio.to_thread(hands.stack.start_bus, number)
    return hands.server_name(number)


async def lame_duck(hands: Hands, fault: Fault) -> str:
    """A planned stop of a nats-server: its clients are sent away one by one before it ends; then it comes back."""
    with hands.disturbing():
        number = random.choice(hands.servers())
        proc = hands.stack.procs[hands.server_name(number)].popen
        hands.stack.signal(hands.server_name(number), signal.SIGUSR2)
        try:
            await asyncio.wait_for(asyncio.to_thread(proc.wait), 30)
        except TimeoutError:
            await asyncio.to_thread(hands.stack.kill, hands.server_name(number))
        await asyncio.sleep(fault.seconds)
        await asyncio.to_thread(hands.stack.start_bus, number)
    return hands.server_name(number)


async def leave_bus(hands: Hands, fault: Fault) -> str:
    """One nats-server of three goes and does not come back before the end."""
    with hands.disturbing():
        number = hands.servers()[-1]
        hands.away.add(number)
        await asyncio.to_thread(hands.stack.kill, hands.server_name(number))
        await asyncio.sleep(fault.seconds)
    return hands.server_name(number)


async def slow_disk(hands: Hands, fault: Fault) -> str:
    """Every nats-server answers nothing for 200 ms, again and again."""
    with hands.disturbing():
        end = time.monotonic() + fault.seconds
        while time.monotonic() < end:
            for number in hands.servers():
                hands.stack.signal(hands.server_name(number), signal.SIGSTOP)
            await asyncio.sleep(PULSE)
            for number in hands.servers():
                hands.stack.signal(hands.server_name(number), signal.SIGCONT)
            await asyncio.sleep(PULSE)
    return NATS


async def full_store(hands: Hands, fault: Fault) -> str:
    """Nothing more can be stored on the bus; then there is room again."""
    with hands.disturbing():
        await bus_admin.fill(hands.stack.nats_url, len(hands.servers()))
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            await bus_admin.make_room(hands.stack.nats_url)
    return NATS


async def api_away(hands: Hands, fault: Fault) -> str:
    """SIGKILL the API server, and start it again."""
    await asyncio.to_thread(hands.api_server.kill)
    await asyncio.sleep(fault.seconds)
    await asyncio.to_thread(hands.api_server.back)
    await until_api(hands.api)
    await asyncio.to_thread(hands.api_server.restart_controllers)
    return "kube-apiserver"


async def black_hole(hands: Hands, fault: Fault) -> str:
    """All connections between a service and the API server stand still, and so do new ones."""
    proxies = hands.proxies.of(fault.target)
    for proxy in proxies:
        proxy.hold()
    try:
        await asyncio.sleep(fault.seconds)
    finally:
        for proxy in proxies:
            proxy.open()
    return fault.target


async def storm(hands: Hands, fault: Fault) -> str:
    """Every request to the API server is answered with 429 and Retry-After."""
    for proxy in hands.proxies.by_name.values():
        proxy.busy = True
    try:
        await asyncio.sleep(fault.seconds)
    finally:
        for proxy in hands.proxies.by_name.values():
            proxy.busy = False
    return "all"


KINDS: Mapping[str, Callable[[Hands, Fault], Awaitable[str]]] = {
    "kill": kill,
    "freeze": freeze,
    "kill-bus": kill_bus,
    "wipe-bus": wipe,
    "kill-leader": kill_leader,
    "lame-duck": lame_duck,
    "bus-server-away": leave_bus,
    "slow-disk": slow_disk,
    "full-store": full_store,
    "api-away": api_away,
    "black-hole": black_hole,
    "storm": storm,
}


async def strike(hands: Hands, fault: Fault) -> None:
    """Make a fault and write it down."""
    began = time.time()
    target = await KINDS[fault.kind](hands, fault)
    hands.struck.append(Struck(fault.kind, target, began, time.time()))


async def until_api(api: Api) -> None:
    """Wait until the API server is ready. Raises TimeoutError."""
    async with asyncio.timeout(API_PATIENCE):
        while True:
            try:
                await api.call("GET", api.pods() + "?limit=1")
                return
            except Away:
                await asyncio.sleep(0.5)


def plan(dice: random.Random, bus_servers: int, api_away_seconds: float) -> tuple[list[Fault], list[Fault]]:
    """Two lists that go side by side: faults of services, faults of what they stand on. Each kind three times, for each
    service; one freeze of each service lasts 30 s. A frozen bus server away for good comes in the middle."""
    services = [Fault("kill", s, seconds) for s in SERVICES for seconds in (4, 4, 4)]
    services += [Fault("freeze", s, seconds) for s in SERVICES for seconds in (30, 8, 4)]
    below = [Fault("black-hole", s, seconds) for s in ("watcher", "applier", "prober") for seconds in (15, 25, 5)]
    below += [Fault("api-away", "", api_away_seconds)] * 3 + [Fault("storm", "", 10)] * 3
    below += [Fault("slow-disk", "", 10)] * 3 + [Fault("full-store", "", 10)] * 3
    below += [Fault("kill-bus", "", 1)] * 3 + [Fault("wipe-bus", "", 1)] * 3
    dice.shuffle(services)
    dice.shuffle(below)
    if bus_servers > 1:
        # Two empty servers of three elect nobody: a wipe is for all of them.
        with_all = [Fault("kill-leader", "", 3)] * 3 + [Fault("lame-duck", "", 3)] * 3
        with_all += [fault for fault in below if fault.kind == "wipe-bus"]
        dice.shuffle(with_all)
        others = [fault for fault in below if fault.kind != "wipe-bus"]
        half = len(others) // 2
        below = [*with_all, *others[:half], Fault("bus-server-away", "", 5), *others[half:]]
    return services, below


async def _is_alone(hands: Hands, name: str) -> bool:
    """Whether no other replica of the process's service could take over now."""
    peers = (peer for peer in hands.stack.names(hands.stack.procs[name].service) if peer != name)
    return all([await _why_not_ready(hands, peer) for peer in peers])


async def _why_not_ready(hands: Hands, name: str) -> str:
    return await asyncio.to_thread(readiness, hands.stack.procs[name].health_port)


async def _end_bus(hands: Hands) -> None:
    for number in hands.servers():
        await asyncio.to_thread(hands.stack.kill, hands.server_name(number))


async def _start_bus(hands: Hands) -> None:
    for number in hands.servers():
        await asyncio.to_thread(hands.stack.start_bus, number)
