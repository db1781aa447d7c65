"""`make parity SUITE=<ray-operator>`: KubeRay's own end-to-end tests about RayClusters against Raybus on a real node.

  make parity SUITE=<ray-operator>            what run 1 has not run yet (about 90 minutes)
  make parity SUITE=<ray-operator> ROUND=2    the same for run 2
  make parity SUITE=<ray-operator> TESTS=GcsFault

SUITE is the folder `ray-operator` of a checkout of KubeRay 1.7.0 outside of this repository. Results are kept in
`build/parity`, a line for each test, so that a run goes on where it was ended. When runs 1 and 2 are complete,
docs/parity.md is written from them.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import page
import place
import suite

from raybus.cli.dev_command import make_stack
from raybus.dev import cluster as clusters
from raybus.dev.choice import inspect_machine, obstacle_to_real_node
from raybus.dev.cluster import Cluster, ClusterOptions
from raybus.dev.errors import DevError
from raybus.dev.gotools import ensure_tools
from raybus.dev.kubectl import Kubectl
from raybus.dev.process import direct_environment
from raybus.dev.stack import running

NAME = "parity"
ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build" / "parity"
RUNS = (1, 2)
GATES = "RayClusterStatusConditions=true,RayJobDeletionPolicy=true,RayMultiHostIndexing=true"
"""What KubeRay's own pipeline turns on, as far as it is about RayClusters and cert-manager is not needed for it."""
TIMEOUTS = {"SHORT": "2m", "MEDIUM": "7m", "LONG": "10m"}
"""Those under which KubeRay's own results were taken."""


def main() -> int:
    """The exit status: 0 when no test failed that passes with KubeRay."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=Path, required=True)
    parser.add_argument("--round", type=int, choices=RUNS, default=1)
    parser.add_argument("--tests", default="", help="only those whose name has this in it")
    options = parser.parse_args()
    try:
        _run(options.suite.resolve(), options.round, options.tests)
    except DevError as error:
        sys.stderr.write(f"parity: {error}\n")
        return 2
    results = {number: page.results(_file(number)) for number in RUNS if _file(number).exists()}
    if all(page.complete(results.get(number, {})) for number in RUNS):
        (ROOT / "docs" / "parity.md").write_text(page.page(results))
    worse = page.worse(results[options.round])
    for test in worse:
        sys.stdout.write(f"fails, though it passes with KubeRay: {test}\n")
    sys.stdout.write(page.last_line(results[options.round]) + "\n")
    return 1 if worse else 0


def _run(checkout: Path, number: int, only: str) -> None:
    """Run what is still to be run. Raises DevError when there is nothing to run it on."""
    OUT.mkdir(parents=True, exist_ok=True)
    done = page.results(_file(number)).keys() if _file(number).exists() else set()
    units = [unit for unit in suite.units(suite.known()) if only in unit[1] and "/".join(unit) not in done]
    if not units:
        return
    suite.compile_packages(checkout, OUT / "bin")
    cluster = clusters.up(ClusterOptions(name=NAME))
    try:
        if not cluster.real_node:
            raise DevError(f"no real node, so nothing to test on: {obstacle_to_real_node(inspect_machine())}.")
        tools = ensure_tools(["kubectl"])
        place.furnish(cluster, Kubectl(tools["kubectl"], cluster.kubeconfig))
        with running(make_stack(NAME, {}, {"RAYBUS_FEATURE_GATES": GATES})) as stack:
            for unit in units:
                _one(checkout, number, unit, _environment(cluster, tools["kubectl"]))
                if ended := stack.ended():
                    raise DevError("; ".join(ended))
    finally:
        clusters.down(NAME)


def _one(checkout: Path, number: int, unit: tuple[str, str], environment: Mapping[str, str]) -> None:
    """Run one unit and keep what became of it."""
    log = OUT / f"run-{number}" / f"{unit[0]}.{unit[1].replace('/', '.')}.log"
    artifacts = log.with_suffix(".files")
    artifacts.mkdir(parents=True, exist_ok=True)
    found = suite.run(checkout, OUT / "bin", unit, log, {**environment, "KUBERAY_TEST_OUTPUT_DIR": str(artifacts)})
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    facts = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "commit": commit.stdout.strip()}
    with _file(number).open("a") as file:
        for verdict in found:
            file.write(json.dumps({"package": unit[0], **verdict._asdict(), **facts}) + "\n")
            sys.stdout.write(f"{verdict.result:8} {verdict.seconds:6.0f} s  {unit[0]} {verdict.test}\n")
    sys.stdout.flush()


def _environment(cluster: Cluster, kubectl: Path) -> dict[str, str]:
    timeouts = {f"KUBERAY_TEST_TIMEOUT_{name}": value for name, value in TIMEOUTS.items()}
    path = f"{kubectl.parent}:{os.environ['PATH']}"
    return direct_environment() | timeouts | {"KUBECONFIG": str(cluster.kubeconfig), "PATH": path}


def _file(number: int) -> Path:
    return OUT / f"run-{number}.jsonl"


if __name__ == "__main__":
    sys.exit(main())
