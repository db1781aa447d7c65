"""The control groups of a real node: everything that its pods run lies below one group of ours.

So kubelets of several clusters do not tidy up each other's pods, and `down` finds what is left by its group.
"""

import os
import signal
import time
from pathlib import Path

_CONTROL_GROUPS = Path("/sys/fs/cgroup")
_DEADLINE_S = 10.0


def hierarchies(mounts: str) -> list[tuple[Path, bool]]:
    """Mount points out of the text of `/proc/self/mounts`, each with whether it is of version 2.

    Of a hybrid machine only the version 1 hierarchies count: the kubelet uses these.
    """
    fields = [line.split() for line in mounts.splitlines()]
    first = [(Path(field[1]), False) for field in fields if field[2] == "cgroup"]
    second = [(Path(field[1]), True) for field in fields if field[2] == "cgroup2"]
    return first or second


def make_group(name: str) -> None:
    """Make group `name` in all hierarchies, with all controllers for its children."""
    for root, unified in hierarchies(Path("/proc/self/mounts").read_text()):
        group = root / name
        group.mkdir(exist_ok=True)
        if unified:
            enable = " ".join(f"+{controller}" for controller in (root / "cgroup.controllers").read_text().split())
            for parent in (root, group):
                (parent / "cgroup.subtree_control").write_text(enable)
        elif (group / "cpuset.cpus").exists():
            for setting in ("cpuset.cpus", "cpuset.mems"):
                (group / setting).write_text((root / setting).read_text())


def remove_group(name: str) -> None:
    """End all processes in group `name` and remove it with everything below."""
    for root, _ in hierarchies(Path("/proc/self/mounts").read_text()):
        group = root / name
        deadline = time.monotonic() + _DEADLINE_S
        while group.exists() and time.monotonic() < deadline:
            for folder, _, _ in os.walk(group, topdown=False):
                _empty(Path(folder))
            time.sleep(0.02)


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
