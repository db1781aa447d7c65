"""Runs seeds in a process of its own: `python sim_worker.py '{"seeds": [1, 2], "bug": ""}'` prints one JSON line each.

With a bug it stops at the first seed that finds it. `--tell SEED [BUG]` runs one seed and tells all that happened.
Hashes of text are the same in every worker (PYTHONHASHSEED), so that a seed repeats exactly.
"""

import asyncio
import dataclasses
import gc
import json
import logging
import os
import sys
import time
from typing import Any

import structlog
from planted import BUGS

from raybus.testkit.simulator import Outcome, simulate
from raybus.testkit.virtual_time import SERVICE


class Listener:
    """What the services log: exceptions that they caught are bugs; everything is told when asked for."""

    def __init__(self, tell: bool) -> None:
        self.tell, self.bugs = tell, list[str]()

    def __call__(self, _: Any, __: str, event: Any) -> Any:
        """A structlog processor."""
        if event.get("exc_info"):
            self.bugs.append(f"{SERVICE.get()} says {event['event']}: {sys.exc_info()[1]!r}")
        if not self.tell:
            raise structlog.DropEvent
        event["at"] = f"{asyncio.get_running_loop().time():9.3f} {SERVICE.get():16}"
        return event


def run(seed: int, listener: Listener) -> Outcome:
    """One seed; a bug that a service logged is a violation too."""
    listener.bugs.clear()
    outcome = simulate(seed)
    if listener.bugs and not outcome.wrong:
        outcome.wrong = "no service has a bug: " + listener.bugs[0]
    gc.collect()
    return outcome


def main() -> int:
    """Exit status 1 when a told seed fails."""
    tell = sys.argv[1] == "--tell"
    listener = Listener(tell)
    structlog.configure(
        processors=[
            listener,
            structlog.processors.format_exc_info,
            structlog.processors.KeyValueRenderer(["at", "event"]),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO if tell else logging.ERROR),
        cache_logger_on_first_use=True,
    )
    gc.disable()
    task = {"seeds": [int(sys.argv[2])], "bug": "".join(sys.argv[3:4])} if tell else json.loads(sys.argv[1])
    if task["bug"]:
        BUGS[task["bug"]]()
    for seed in task["seeds"]:
        begun = time.monotonic()
        outcome = run(seed, listener)
        if tell:
            sys.stdout.write("\n".join([*outcome.story, outcome.wrong or "nothing is wrong", ""]))
            return int(bool(outcome.wrong))
        line = dataclasses.asdict(outcome) | {"seconds": round(time.monotonic() - begun, 3)}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
        if task["bug"] and outcome.wrong:
            break
    return 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
