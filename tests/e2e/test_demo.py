"""`raybus demo` as a newcomer types it, to the end and with Ctrl-C in the middle: it undoes what it started."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ray_world import RayWorld

from raybus.dev.cluster import Cluster
from raybus.dev.kubectl import Kubectl

LIMIT = 600.0


@contextmanager
def demo(cluster: Cluster) -> Iterator["subprocess.Popen[str]"]:
    """The command, started; ended at the latest with the block."""
    command = [sys.executable, "-m", "raybus.cli", "demo", "--cluster", cluster.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.terminate()


def check_nothing_left(cluster: Cluster, kubectl: Kubectl) -> None:
    """No process of Raybus, and no RayJob; its pods go with it."""
    folder = str(cluster.folder / "stack")
    for path in Path("/proc").glob("[0-9]*"):
        try:
            held = {str(link.readlink()) for link in (path / "fd").iterdir()}
        except OSError:  # it has just ended, or is none of ours
            continue
        assert not any(file.startswith(folder) for file in held), (path / "cmdline").read_bytes()
    world = RayWorld(kubectl, "default")
    assert world.list("rayjobs") == []
    world.wait("all pods are gone", lambda: not world.list("pods") or None, 120)


def test_demo_succeeds_on_both_ray_nodes(real_cluster: Cluster, kubectl: Kubectl) -> None:
    with demo(real_cluster) as process:
        output, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 0, output
    lines = output.splitlines()
    assert re.fullmatch(r"demo: SUCCEEDED in \d+ s", lines[-1]), output
    assert re.search(r"^    10000000 points on 2 Ray node\(s\) in ", output, re.MULTILINE), output
    assert re.search(r"^ +\d+\.\d s  RayJob is Complete, Ray says SUCCEEDED$", output, re.MULTILINE), output
    check_nothing_left(real_cluster, kubectl)


def test_demo_ended_by_ctrl_c_leaves_nothing(real_cluster: Cluster, kubectl: Kubectl) -> None:
    with demo(real_cluster) as process:
        assert process.stdout is not None
        before = []
        for line in process.stdout:
            before.append(line)
            if "RayCluster pi-" in line:
                break
        process.send_signal(signal.SIGINT)
        after, _ = process.communicate(timeout=LIMIT)
    assert process.returncode == 128 + signal.SIGINT, (before, after)
    assert "Traceback" not in after and "SUCCEEDED" not in after, after
    check_nothing_left(real_cluster, kubectl)
