"""`make bench`: how fast the control plane is, on a simulated cluster; see docs/performance.md for the figures.

  make bench                                                     500 clusters of a head and 3 workers
  make bench KUBERAY_OPERATOR=<binary>                           beside KubeRay, alternately, three times each
  make bench BENCH="--clusters 2000" | "--workers 50" | "--scale" | "--rayjobs 1000" | "--fair" | "--idle"
  make bench BENCH="--replicas cluster-ctl=2"

The results lie in `build/bench` afterwards: JSON, and a plot of ready clusters over time.
"""

import argparse
import json
import os
import signal
import sys
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

import fairness
import idle
import rayjobs
import scale
from figures import RATIOS, figures, last_line, medians, ratios
from planes import Plane, kuberay, raybus
from plot import steps, svg
from runs import Fleet, remove_namespaces, run, shown
from say import note, say

from raybus.cli.dev_command import parse_replicas
from raybus.dev.cluster import Cluster, ClusterOptions, up
from raybus.dev.errors import DevError

NAME, NODES = "bench", 20
ROUNDS = 3
OUT = Path(__file__).resolve().parents[2] / "build" / "bench"


def main() -> int:
    """The exit status: 1 when the benchmark could not be carried out."""
    options = _options()
    OUT.mkdir(parents=True, exist_ok=True)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what was started is ended
    try:
        cluster = up(ClusterOptions(name=NAME, kwok_nodes=NODES))
        remove_namespaces(cluster, "bench", "storm", "single", "scale", "rayjobs")
        line = _mode(cluster, options)
    except (DevError, ValueError) as error:
        note(f"bench: {error}")
        return 1
    say(line)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clusters", type=int, default=500)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--rate", type=float, default=100, help="clusters submitted in a second")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each control plane when KubeRay takes part")
    parser.add_argument("--replicas", action="append", default=[], metavar="SERVICE=N")
    parser.add_argument("--scale", action="store_true", help="100 clusters from 0 to 100 workers")
    parser.add_argument("--rayjobs", type=int, default=0, metavar="N", help="HTTPMode, stand-in dashboards")
    parser.add_argument("--fair", action="store_true", help="single clusters while others storm")
    parser.add_argument("--idle", action="store_true", help="memory, idle CPU, latency without load")
    return parser.parse_args()


def _mode(cluster: Cluster, options: argparse.Namespace) -> str:
    """Run what was asked for; returns the last line."""
    mine = _raybus(cluster, options)
    if options.scale:
        with mine as plane:
            return scale.measure(cluster, plane, OUT / "scale.json")
    if options.rayjobs:
        return rayjobs.measure(cluster, OUT, options.rayjobs)
    if options.fair:
        with mine as plane:
            return fairness.measure(cluster, plane, OUT)
    if options.idle:
        with mine as plane:
            return idle.measure(cluster, plane, OUT / "idle.json")
    operator = os.environ.get("KUBERAY_OPERATOR", "")
    return _compare(cluster, options, Path(operator)) if operator else _alone(cluster, options)


def _raybus(cluster: Cluster, options: argparse.Namespace) -> AbstractContextManager[Plane]:
    return raybus(cluster, OUT / "raybus", parse_replicas(options.replicas))


def _fleet(options: argparse.Namespace) -> Fleet:
    return Fleet(options.clusters, options.workers, options.rate, timeout=max(900, options.clusters))


def _alone(cluster: Cluster, options: argparse.Namespace) -> str:
    with _raybus(cluster, options) as plane:
        result = run(cluster, plane, _fleet(options), OUT / "raybus.json")
    say(shown(result))
    _plot(options, {"raybus": result})
    return last_line(figures(result), {})


def _compare(cluster: Cluster, options: argparse.Namespace, operator: Path) -> str:
    """Both control planes in turn, so that what changes on the machine meanwhile meets both."""
    results: dict[str, list[dict[str, Any]]] = {}
    for number in range(options.rounds):
        for make in (
            partial(_raybus, cluster, options),
            partial(kuberay, cluster, OUT, operator, 10),
            partial(kuberay, cluster, OUT, operator, 1),
        ):
            with make() as plane:
                result = run(cluster, plane, _fleet(options), OUT / f"{plane.label}-{number}.json")
            note(f"{plane.label} round {number}: {json.dumps(figures(result)._asdict())}")
            results.setdefault(plane.label, []).append(result)
            remove_namespaces(cluster, _fleet(options).namespace)
    middle = {label: medians([figures(result) for result in found]) for label, found in results.items()}
    say(json.dumps({label: found._asdict() for label, found in middle.items()}, indent=1))
    _plot(options, {label: _middle(found) for label, found in results.items()})
    more = ratios(middle["raybus"], middle["kuberay-c10"])
    assert more.keys() <= RATIOS.keys()
    return last_line(middle["raybus"], more)


def _middle(results: list[dict[str, Any]]) -> dict[str, Any]:
    """The run whose throughput is the median."""
    return sorted(results, key=lambda result: result["clusters_per_s"])[len(results) // 2]


def _plot(options: argparse.Namespace, results: dict[str, dict[str, Any]]) -> None:
    title = f"{options.clusters} RayClusters of 1 head + {options.workers} workers, submitted at {options.rate:g}/s"
    curves = {label: steps(result["ready_at"]) for label, result in results.items()}
    (OUT / f"fleet-{options.clusters}x{options.workers}.svg").write_text(svg(title, curves))


if __name__ == "__main__":
    sys.exit(main())
