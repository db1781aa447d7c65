"""`make chaos`: a fleet under faults, judged from outside. The last line holds the figures; exit status 1 if one of
them is not what it must be.

  make chaos                        every kind of fault, three times at least: about ten minutes, and the convergence
  make chaos MINUTES=3              the faults of the first minutes
  make chaos CHAOS="--long"         at last the API server is away for ten minutes
  make chaos CHAOS="--bus-servers 3"
"""

import argparse
import asyncio
import random
import signal
import sys
import time
from collections.abc import Sequence

import faults
from faults import Fault
from stage import Run, Wanted, leave, recorded, running, say, until_none
from verdict import report

from raybus.dev.stack import SERVICES

API_AWAY, API_AWAY_LONG = 60.0, 600.0
BETWEEN = 1.5
"""Seconds between two faults of one list."""
WARM_UP = 5.0
"""Seconds of work before the first fault: by then not even all objects are made."""


def options() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=25.0, help="after which no fault begins any more")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--clusters", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=50)
    parser.add_argument("--bus-servers", type=int, choices=(1, 3), default=1)
    parser.add_argument("--long", action="store_true")
    return parser.parse_args()


async def main() -> int:
    """The whole run; returns the exit status."""
    this = asyncio.current_task()
    assert this is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, this.cancel)
    asked = options()
    wanted = Wanted(dict.fromkeys(SERVICES, 2), asked.bus_servers, asked.seed, asked.clusters, asked.jobs)
    async with running(wanted) as run:
        late = await recorded(run, _go(run, asked))
        return report(run, [*late, *run.hands.stack.ended()], say)


async def _go(run: Run, asked: argparse.Namespace) -> list[str]:
    """Work, faults, and the quiet after them; returns what has not converged or cannot be removed."""
    say(f"namespace {run.namespace}: {asked.clusters} RayClusters and {asked.jobs} RayJobs")
    users = asyncio.create_task(_use(run))
    await asyncio.sleep(WARM_UP)
    lanes = faults.plan(random.Random(asked.seed), asked.bus_servers, API_AWAY)
    if asked.long:
        lanes[1].append(Fault("api-away", "", API_AWAY_LONG))
    end = time.monotonic() + asked.minutes * 60
    await asyncio.gather(*(_strike(run, lane, end) for lane in lanes))
    say(f"{len(run.hands.struck)} faults are over; waiting until everything is as it was wanted")
    users.cancel()
    await asyncio.wait((users,))
    if not users.cancelled():
        users.result()
    for number in sorted(run.hands.away):
        await asyncio.to_thread(run.hands.stack.start_bus, number)
    run.ray.finish()
    left = await until_none(run.workload.unfinished, "everything is as it was wanted")
    return left + await leave(run)


async def _use(run: Run) -> None:
    await run.workload.begin()
    await run.workload.go_on()


async def _strike(run: Run, lane: Sequence[Fault], end: float) -> None:
    for fault in lane:
        if time.monotonic() > end:
            return
        say(f"{fault.kind} {fault.target} {fault.seconds:g} s")
        await faults.strike(run.hands, fault)
        await asyncio.sleep(BETWEEN)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
