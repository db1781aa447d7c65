"""All services in one process on virtual time: many seeds without a violation, and every planted bug found.

RAYBUS_SEEDS: how many seeds (200). RAYBUS_SEED: only this one, with its story.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from planted import BUGS

WORKER = Path(__file__).parent / "sim_worker.py"
SEEDS = int(os.environ.get("RAYBUS_SEEDS") or 200)
ONE = os.environ.get("RAYBUS_SEED") or ""
MOST = 200
"""Seeds within which a planted bug has to be found."""
CHUNK = 20
PROCESSES = 2
FOUND_BY = {
    "no_status_version": [1],
    "no_fill_marker": [1],
    "no_echo": [5],
    "reused_names": [1],
    "blind_publish": [1],
    "no_tombstones": [1],
    "silence_is_failure": [5],
    "no_fresh_look": [4],
    "late_finalizer": [1],
    "refusals_loop": [8],
    "no_first_decision": [1],
}
"""The planted bugs that are hunted, each with seeds that found it, tried first. When the simulator changes they may
find it no more; then the others, from 1 on, still have to. The rest of `planted.BUGS` needs rarer events than the
first dozen seeds bring: `docs/guarantees.md` names them as not shown yet."""

Line = dict[str, Any]


def work(seeds: list[int], bug: str = "") -> list[Line]:
    """What a worker says of these seeds."""
    task = json.dumps({"seeds": seeds, "bug": bug})
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, str(WORKER), task], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


def hunt(bug: str) -> Line | None:
    """The first run that finds a planted bug."""
    first = FOUND_BY.get(bug, [])
    lines = work([*first, *(seed for seed in range(1, MOST + 1 - len(first)) if seed not in first)], bug)
    return lines[-1] if lines and lines[-1]["wrong"] else None


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    """As many workers at once as there are cores in CI."""
    with ThreadPoolExecutor(PROCESSES) as executor:
        yield executor


@pytest.fixture(scope="module")
def runs(pool: ThreadPoolExecutor) -> list[Future[list[Line]]]:
    """All seeds, begun at once in chunks."""
    return [
        pool.submit(work, list(range(first, min(first + CHUNK, SEEDS + 1)))) for first in range(1, SEEDS + 1, CHUNK)
    ]


@pytest.fixture(scope="module")
def hunts(pool: ThreadPoolExecutor, runs: object) -> dict[str, "Future[Line | None]"]:
    """All planted bugs, hunted while and after the seeds run."""
    return {bug: pool.submit(hunt, bug) for bug in FOUND_BY}


def told(line: Line) -> str:
    """A failure with its story and how to see it again."""
    return "\n".join([*line["story"], "", line["wrong"], f"replay: make sim SEED={line['seed']}"])


if ONE:

    def test_the_one_seed_that_was_asked_for() -> None:
        (line,) = work([int(ONE)])
        assert not line["wrong"], told(line)

else:

    def test_no_seed_violates_anything(runs: list[Future[list[Line]]], hunts: object) -> None:
        lines = [line for run in runs for line in run.result()]
        bad = [line for line in lines if line["wrong"]]
        assert not bad, f"{len(bad)} of {len(lines)} seeds fail; the first:\n{told(bad[0])}"
        assert len(lines) == SEEDS

    @pytest.mark.parametrize("bug", FOUND_BY)
    def test_a_planted_bug_is_found(bug: str, hunts: dict[str, "Future[Line | None]"]) -> None:
        found = hunts[bug].result()
        assert found is not None, f"{MOST} seeds do not notice {bug}: {BUGS[bug].__doc__}"

    def test_a_seed_repeats_exactly(pool: ThreadPoolExecutor) -> None:
        one, two = pool.submit(work, [7, 8]), pool.submit(work, [8, 7])
        digests = [[line["digest"] for line in run.result()] for run in (one, two)]
        assert digests[0] == digests[1][::-1]
