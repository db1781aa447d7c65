"""The world that simulated services live in: bus, Kubernetes, Ray, clocks and chance, all from one seed."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from raybus.api.times import Instant
from raybus.kube.port import Request
from raybus.testkit.api_controllers import GarbageCollector, JobController
from raybus.testkit.fake_api import SMOOTH, FakeApi, Fault
from raybus.testkit.fake_bus import BusServer, Network
from raybus.testkit.fake_kubelet import Kubelet
from raybus.testkit.fake_ray import FakeRay, Submitters

EPOCH = 1_800_000_000.0
"""Wall clock at the start of every run."""

_DELAYS: dict[str, tuple[float, float]] = {
    "schedule": (0.01, 0.3),
    "start": (0.1, 1.2),
    "ready": (0.1, 1.5),
    "terminate": (0.05, 3.0),
    "restart": (0.5, 3.0),
    "gc": (0.01, 1.0),
    "job": (0.05, 0.5),
    "submitter": (0.1, 1.0),
}
"""What takes how long in the cluster: seconds, at least and at most."""


@dataclass(frozen=True)
class Climate:
    """How bad it is while faults last; each is a probability for one message or request unless it says otherwise.

    `slow`: a call or message takes up to `slowest` seconds instead of milliseconds. `lost`: an acknowledgement or
    heart-beat. `api_error`, `api_timeout`: a request to the API server, half of them after their effect. `repeated`:
    a request that is idempotent arrives once more, seconds later.
    """

    slow: float = 0.0
    slowest: float = 0.5
    lost: float = 0.0
    api_error: float = 0.0
    api_timeout: float = 0.0
    repeated: float = 0.0


CALM = Climate()


class World:
    """`climate` may be changed while it runs; `skew`: seconds by which a process's wall clock is ahead, the API
    server's and bus's as "" and Ray's as "ray"."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.climate = CALM
        self.skew: dict[str, float] = {}
        self._loop = asyncio.get_running_loop()
        self.bus = BusServer(self.clock(""))
        self.api = FakeApi(self.clock(""), self.chance("uids"))
        delay = self._delays(self.chance("cluster"))
        GarbageCollector(self.api, delay)
        JobController(self.api, delay)
        self.ray = FakeRay(self.api, self.clock("ray"))
        self.kubelet = Kubelet(self.api, delay)
        self.submitters = Submitters(self.ray, self.kubelet, delay)
        self.kubelet.run = self.submitters.run

    @property
    def time(self) -> float:
        """True seconds since the start."""
        return self._loop.time()

    def chance(self, purpose: str) -> random.Random:
        """A source of chance of its own, so that one purpose's draws do not change another's."""
        return random.Random(f"{self.seed}/{purpose}")

    def clock(self, name: str) -> Callable[[], Instant]:
        """The wall clock of a process."""
        return lambda: Instant(EPOCH + self._loop.time() + self.skew.get(name, 0.0))

    def network(self, name: str) -> Network:
        """The way from the process `name` to the bus."""
        return _Weather(self, self.chance(f"bus/{name}"))

    def api_faults(self, name: str) -> Callable[[Request], Fault]:
        """What happens to the requests of the process `name`."""
        rng = self.chance(f"api/{name}")

        def fault(request: Request) -> Fault:
            climate = self.climate
            before, after = rng.uniform(0.001, 0.01), rng.uniform(0.001, 0.01)
            if climate is CALM:
                return SMOOTH._replace(before=before, after=after)
            if rng.random() < climate.slow:
                after = rng.uniform(0.0, climate.slowest)
            if rng.random() < climate.slow:
                before = rng.uniform(0.0, climate.slowest)
            draw = rng.random()
            if draw < climate.api_timeout:
                return _timeout(rng, before, after, request)
            if draw < climate.api_timeout + climate.api_error:
                return _error(rng, before, after)
            if request.method != "POST" and rng.random() < climate.repeated:
                return Fault(before, after, again=rng.uniform(0.5, 15.0))
            return Fault(before, after)

        return fault

    def ray_delay(self, name: str) -> Callable[[], float]:
        """Seconds that a call of the process `name` to a dashboard is on its way."""
        rng = self.chance(f"ray/{name}")
        return lambda: rng.uniform(0.002, 0.05)

    def _delays(self, rng: random.Random) -> Callable[[str], float]:
        return lambda name: rng.uniform(*_DELAYS[name])


def _timeout(rng: random.Random, before: float, after: float, request: Request) -> Fault:
    """No answer; half of the times the effect takes place, of a fenced request perhaps long after it was given up.

    A create is never that late: nothing in Kubernetes fences one (issue 5 counts these apart).
    """
    if request.method != "POST" and rng.random() < 0.5:
        before = rng.uniform(0.0, 25.0)
    return Fault(before, after, "timeout", rng.random() < 0.5)


def _error(rng: random.Random, before: float, after: float) -> Fault:
    match rng.randrange(4):
        case 0:
            return Fault(before, after, "busy", False)
        case 1:
            return Fault(before, after, "broken", rng.random() < 0.5)
        case 2:
            return Fault(before, after, "conflict", False)
        case _:
            return Fault(before, after, "refused", False)


class _Weather(Network):
    """The bus connection of one process in the present climate."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world, self._rng = world, rng

    def delay(self) -> float:
        climate, rng = self._world.climate, self._rng
        if climate.slow and rng.random() < climate.slow:
            return rng.uniform(0.0, climate.slowest)
        return rng.uniform(0.0005, 0.004)

    def lag(self) -> float:
        climate, rng = self._world.climate, self._rng
        if climate.slow and rng.random() < climate.slow:
            return rng.uniform(0.0, climate.slowest)
        return 0.0

    def loses(self, what: str) -> bool:
        lost = self._world.climate.lost
        return bool(lost) and self._rng.random() < lost
