"""Faults of a simulated run: which kinds there are, and what each does. A run draws its own mixture of them."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from raybus.testkit.api_controllers import later
from raybus.testkit.sim_process import Process
from raybus.testkit.sim_world import CALM, Climate, World


@dataclass(frozen=True)
class Stage:
    """What faults act on. `rng`: their own chance; `note`: told what happens; `wiped`: told of a wiped bus."""

    world: World
    processes: Sequence[Process]
    rng: random.Random
    note: Callable[[str], None]
    wiped: Callable[[], None]

    def any_process(self, service: str = "") -> Process:
        """A process that may be running or not."""
        return self.rng.choice([p for p in self.processes if service in ("", p.service)])


def crash(stage: Stage) -> None:
    """SIGKILL, and a new start after a while."""
    process = stage.any_process()
    if process.task is None or process.is_frozen:
        return
    stage.note(f"kill {process.life}")
    process.kill()
    later(stage.rng.uniform(0.2, 4.0), _restart, process)


def _restart(process: Process) -> None:
    if process.task is None:
        process.start()


def freeze(stage: Stage) -> None:
    """SIGSTOP for up to 30 s; half of them end soon."""
    process = stage.any_process()
    if process.task is None or process.is_frozen:
        return
    seconds = stage.rng.uniform(0.5, 6.0) if stage.rng.random() < 0.7 else stage.rng.uniform(6.0, 30.0)
    stage.note(f"freeze {process.life} for {seconds:.1f} s")
    process.freeze()
    later(seconds, process.thaw)


def restart(stage: Stage) -> None:
    """SIGTERM: it hands over, ends, and another one starts."""
    process = stage.any_process()
    if process.task is None or process.is_frozen:
        return
    stage.note(f"stop {process.life}")
    process.terminate()
    later(stage.rng.uniform(2.0, 5.0), _restart, process)


def cut_bus(stage: Stage) -> None:
    """One process loses its connection to the bus for a while."""
    process = stage.any_process()
    if process.task is None:
        return
    seconds = stage.rng.uniform(0.1, 4.0)
    stage.note(f"cut {process.life} off the bus for {seconds:.1f} s")
    process.bus.cut()
    later(seconds, _mend, process, process.life)


def _mend(process: Process, life: str) -> None:
    if process.task is not None and process.life == life:
        process.bus.mend()


def bus_away(stage: Stage) -> None:
    """The bus cannot be reached by anybody."""
    seconds = stage.rng.uniform(0.5, 8.0) if stage.rng.random() < 0.8 else stage.rng.uniform(16.0, 22.0)
    stage.note(f"the bus is away for {seconds:.1f} s")
    for process in stage.processes:
        if process.task is not None:
            process.bus.cut()
            later(seconds, _mend, process, process.life)


def wipe_bus(stage: Stage) -> None:
    """The bus loses its store."""
    stage.note("wipe the bus")
    stage.wiped()
    stage.world.bus.wipe()


def cut_watches(stage: Stage) -> None:
    """All watches of one watcher break; half of the times the history is compacted before they resume (410)."""
    process = stage.any_process("watcher")
    if process.task is None:
        return
    compacted = stage.rng.random() < 0.5
    stage.note(f"cut the watches of {process.life}" + (", compacted" if compacted else ""))
    process.api.cut()
    if compacted:
        stage.world.api.compact()


def silence_watches(stage: Stage) -> None:
    """All watches of one watcher fall silent without ending."""
    process = stage.any_process("watcher")
    if process.task is not None:
        stage.note(f"silence the watches of {process.life}")
        process.api.black_hole()


def api_away(stage: Stage) -> None:
    """One process cannot reach the API server for a while."""
    process = stage.any_process(stage.rng.choice(("applier", "watcher")))
    if process.task is None:
        return
    seconds, connection = stage.rng.uniform(0.5, 10.0), process.api
    stage.note(f"cut {process.life} off the API server for {seconds:.1f} s")
    connection.down = True
    connection.cut()
    later(seconds, _reconnect, process, process.life)


def _reconnect(process: Process, life: str) -> None:
    if process.task is not None and process.life == life:
        process.api.down = False


def clock_jump(stage: Stage) -> None:
    """One wall clock jumps: of a process, of the API server and the bus, or of Ray."""
    name = stage.rng.choice([*(p.name for p in stage.processes), "", "ray"])
    seconds = stage.rng.uniform(-20.0, 20.0)
    stage.note(f"the clock of {name or 'the servers'} jumps by {seconds:+.1f} s")
    stage.world.skew[name] = seconds


def draw_climate(rng: random.Random) -> Climate:
    """Some weather."""
    return Climate(
        slow=rng.choice((0.0, 0.05, 0.3)),
        slowest=rng.choice((0.1, 0.5, 2.0)),
        lost=rng.choice((0.0, 0.02, 0.1)),
        api_error=rng.choice((0.0, 0.05, 0.3)),
        api_timeout=rng.choice((0.0, 0.05, 0.2)),
        repeated=rng.choice((0.0, 0.1, 0.5)),
    )


def bad_weather(stage: Stage) -> None:
    """Slow and lossy networks, an API server in trouble, for a while."""
    climate, seconds = draw_climate(stage.rng), stage.rng.uniform(2.0, 12.0)
    stage.note(f"{climate} for {seconds:.1f} s")
    stage.world.climate = climate
    later(seconds, _calm, stage.world, climate)


def _calm(world: World, climate: Climate) -> None:
    if world.climate is climate:
        world.climate = CALM


FAULTS: Mapping[str, Callable[[Stage], None]] = {
    "crash": crash,
    "freeze": freeze,
    "restart": restart,
    "cut bus": cut_bus,
    "bus away": bus_away,
    "wipe bus": wipe_bus,
    "cut watches": cut_watches,
    "silence watches": silence_watches,
    "api away": api_away,
    "clock jump": clock_jump,
    "weather": bad_weather,
}
"""Every kind of fault by name."""


def heal(stage: Stage) -> None:
    """End all faults: from here on nothing goes wrong any more."""
    stage.world.climate = CALM
    stage.world.skew.clear()
    for process in stage.processes:
        if process.task is None:
            process.start()
            continue
        process.thaw()
        process.api.down = False
        if stage.rng.random() < 0.8:
            # Else a silent watch is noticed by its time-out, after a minute.
            process.api.cut()
        if not process.bus.is_up:
            process.bus.mend()
