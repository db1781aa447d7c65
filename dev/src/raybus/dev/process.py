"""Start programs that outlive us, and end exactly these again (ADR 0011).

A pid alone may belong to somebody else by now. So the start time of the process and the boot are stored with it, and
nothing is signalled unless all three still match.
"""

import hashlib
import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from raybus.dev.errors import DevError

_GRACE_S = 10.0
_ENDED = frozenset({"Z", "X"})


@dataclass(frozen=True)
class Component:
    """A program of the cluster; `argv[0]` is an absolute path."""

    name: str
    argv: tuple[str, ...]

    def digest(self) -> str:
        """Changes when the command line does: a running component with another digest is out of date."""
        return hashlib.sha256("\0".join(self.argv).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Record:
    """What is stored about a started component. `start_ticks`: clock ticks between boot and the start."""

    pid: int
    start_ticks: int
    boot_id: str
    digest: str


def start_ticks(stat: str) -> int | None:
    """Start time out of the text of `/proc/<pid>/stat`; None for one that has ended and only waits to be reaped."""
    fields = stat.rpartition(")")[2].split()
    return None if _has_ended(fields) else int(fields[19])


def group_of(stat: str) -> int | None:
    """Process group out of the text of `/proc/<pid>/stat`; None for one that has ended."""
    fields = stat.rpartition(")")[2].split()
    return None if _has_ended(fields) else int(fields[2])


def is_same(record: Record, boot_id: str, ticks: int | None) -> bool:
    """Whether the process that has the pid now is the one that was started."""
    return ticks is not None and record.boot_id == boot_id and record.start_ticks == ticks


def running(folder: Path, name: str) -> Record | None:
    """The record of component `name` if its process still runs."""
    try:
        record = Record(**json.loads((folder / f"{name}.json").read_text()))
    except FileNotFoundError:
        return None
    _reap(record.pid)
    return record if is_same(record, _boot_id(), _ticks(record.pid)) else None


def start(component: Component, folder: Path) -> bool:
    """Start `component` unless it runs already with this very command line; tells whether it was started.

    Its record goes to `folder/<name>.json`, its output to `folder/<name>.log`. Raises `DevError` when it cannot start.
    """
    record = running(folder, component.name)
    if record is not None and record.digest == component.digest():
        return False
    stop(folder, component.name)
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / f"{component.name}.log"
    output = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    try:
        pid = os.posix_spawn(
            component.argv[0],
            component.argv,
            direct_environment(),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, str(log), output, 0o644),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError as error:
        raise DevError(f"{component.name} could not be started from {component.argv[0]}: {error.strerror}") from error
    ticks = _ticks(pid)
    if ticks is None:
        raise DevError(f"{component.name} ended at once: {last_line(log)} (whole log: {log})")
    record = Record(pid, ticks, _boot_id(), component.digest())
    (folder / f"{component.name}.json").write_text(json.dumps(asdict(record)))
    return True


def stop(folder: Path, name: str, grace_s: float = _GRACE_S) -> bool:
    """End component `name` and its process group; tells whether it was running. Returns when all of it is gone.

    `grace_s`: seconds between SIGTERM and SIGKILL.
    """
    record = running(folder, name)
    if record is not None:
        end_group(record.pid, grace_s)
    (folder / f"{name}.json").unlink(missing_ok=True)
    return record is not None


def end_group(leader: int, grace_s: float = _GRACE_S) -> None:
    """End the process group that `leader` leads: SIGTERM, and SIGKILL to what is left after `grace_s` seconds."""
    _signal_group(leader, signal.SIGTERM)
    deadline = time.monotonic() + grace_s
    while _group_exists(leader):
        if time.monotonic() > deadline:
            _signal_group(leader, signal.SIGKILL)
            deadline = float("inf")
        time.sleep(0.02)
    _reap(leader)


def direct_environment() -> dict[str, str]:
    """Our environment without proxies: everything that a cluster talks to is on this machine."""
    return {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}


def last_line(log: Path) -> str:
    """The last line of a log that says something, shortened; for error messages."""
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] if log.exists() else []
    return lines[-1].strip()[:300] if lines else "its log is empty"


def _has_ended(fields: list[str]) -> bool:
    """A zombie without other threads: while these end, a Go program still holds its files and ports."""
    return fields[0] in _ENDED and int(fields[17]) <= 1


def _signal_group(leader: int, number: signal.Signals) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        return


def _group_exists(leader: int) -> bool:
    """Whether a process of the group still runs; those that only wait to be reaped do not count."""
    _reap(leader)
    return any(group_of(text) == leader for text in _stats())


def _stats() -> Iterator[str]:
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            yield path.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue


def _reap(pid: int) -> None:
    """Collect the exit status if the process is our own child; otherwise init does that, in its own time."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def _ticks(pid: int) -> int | None:
    try:
        return start_ticks(Path(f"/proc/{pid}/stat").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
