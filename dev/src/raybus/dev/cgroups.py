"""The control groups of a real node: everything that its pods run lies below one group of ours.

So kubelets of several clusters do not tidy up each other's pods, and `down` finds what is left by its group.
"""

import os
import signal
import time
from pathlib import Path

_DEADLINE_S = 10.0
# In version 1 a group has the weight of one single process (1024) against each of the processes beside it: two dozen
# processes of Ray together as much as one compiler. So eight times that.
_SHARES = 8 * 1024


def hierarchies(mounts: str, version: str) -> list[Path]:
    """Mount points of control groups of `version` ("cgroup" or "cgroup2") in the text of `/proc/self/mounts`."""
    fields = [line.split() for line in mounts.splitlines()]
    return [Path(field[1]) for field in fields if field[2] == version]


def make_group(name: str) -> None:
    """Make group `name` in all hierarchies that the kubelet uses, with all controllers for its children.

    On a hybrid machine these are the ones of version 1.
    """
    mounts = Path("/proc/self/mounts").read_text()
    if first := hierarchies(mounts, "cgroup"):
        for root in first:
            _make_first(root, root / name)
    else:
        for root in hierarchies(mounts, "cgroup2"):
            _make_second(root, root / name)


def remove_group(name: str) -> None:
    """End all processes in group `name` and remove it with everything below, in every hierarchy of either version."""
    mounts = Path("/proc/self/mounts").read_text()
    for root in hierarchies(mounts, "cgroup") + hierarchies(mounts, "cgroup2"):
        group = root / name
        deadline = time.monotonic() + _DEADLINE_S
        while group.exists() and time.monotonic() < deadline:
            for folder, _, _ in os.walk(group, topdown=False):
                _empty(Path(folder))
            time.sleep(0.02)


def _make_first(root: Path, group: Path) -> None:
    group.mkdir(exist_ok=True)
    if (group / "cpuset.cpus").exists():
        for setting in ("cpuset.cpus", "cpuset.mems"):
            (group / setting).write_text((root / setting).read_text())
    if (group / "cpu.shares").exists():
        (group / "cpu.shares").write_text(str(_SHARES))


def _make_second(root: Path, group: Path) -> None:
    group.mkdir(exist_ok=True)
    enable = " ".join(f"+{controller}" for controller in (root / "cgroup.controllers").read_text().split())
    for parent in (root, group):
        (parent / "cgroup.subtree_control").write_text(enable)


def _empty(group: Path) -> None:
    try:
        for pid in (group / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        group.rmdir()
    except (FileNotFoundError, ProcessLookupError):
        return
    except OSError:
        # Still busy: its processes have not ended yet. The caller comes again.
        return
