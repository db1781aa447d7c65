"""What must never happen, found in the history, in what Ray was told, and in the API server's audit log. Pure.

A judge shares no code with Raybus, and allows only for what nobody can know: a spec that changed less than `SLACK`
seconds ago may not have reached the controller through a fault.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from history import Cluster, Held, Job, Pod, Seen, Service
from imitation import Run

SLACK = 90.0
"""Seconds; the API server is away for 60 of them."""
TERMINAL = ("Complete", "Failed")


class Wishes:
    """What each RayCluster wanted at which time."""

    def __init__(self) -> None:
        self._by_uid: dict[str, list[tuple[float, Cluster | None]]] = {}
        self._uids: dict[str, str] = {}

    def note(self, seen: Seen) -> None:
        """A revision of a RayCluster."""
        if isinstance(seen.held, Cluster):
            self._uids[seen.name] = seen.held.uid
        uid = self._uids.get(seen.name, "")
        wanted = seen.held if isinstance(seen.held, Cluster) and not seen.held.deleting else None
        self._by_uid.setdefault(uid, []).append((seen.at, wanted))

    def most(self, uid: str, group: str, head: bool, at: float) -> int | None:
        """The most pods wanted within the last `SLACK` seconds; None for an unknown owner."""
        if uid not in self._by_uid:
            return None
        steps = self._by_uid[uid]
        ends = [begun for begun, _ in steps[1:]] + [float("inf")]
        valid = [w for (_, w), end in zip(steps, ends, strict=True) if end > at - SLACK and w is not None]
        return max((1 if head else w.desired.get(group, 0) for w in valid), default=0)


def doubled_pods(history: Iterable[Seen]) -> Iterator[str]:
    """Pods that were created although enough usable ones were there."""
    wishes, pods = Wishes(), dict[str, Pod]()
    for seen in history:
        if seen.kind == "raycluster":
            wishes.note(seen)
        if seen.kind != "pod":
            continue
        before = pods.get(seen.name)
        if not isinstance(seen.held, Pod):
            pods.pop(seen.name, None)
            continue
        pods[seen.name] = pod = seen.held
        if before is not None and before.uid == pod.uid:
            continue
        same = [p for p in pods.values() if p.usable and (p.owner, p.group, p.head) == (pod.owner, pod.group, pod.head)]
        most = wishes.most(pod.owner, pod.group, pod.head, seen.at)
        if most is not None and len(same) > most:
            what = "heads" if pod.head else f"workers of {pod.group}"
            yield f"revision {seen.revision}: {seen.name} makes {len(same)} {what} of {pod.cluster}, wanted are {most}"


def doubled_children(history: Iterable[Seen]) -> Iterator[str]:
    """Second head Services of one RayCluster, second RayClusters of one RayJob."""
    held: dict[tuple[str, str], Held] = {}
    for seen in history:
        before = held.pop((seen.kind, seen.name), None)
        if seen.held is None:
            continue
        held[seen.kind, seen.name] = seen.held
        if before is not None and before.uid == seen.held.uid:
            continue
        match seen.held:
            case Service(owner=owner, head=True):
                others = sum(isinstance(h, Service) and h.owner == owner and h.head for h in held.values())
            case Cluster(owner=owner) if owner:
                others = sum(isinstance(h, Cluster) and h.owner == owner and not h.deleting for h in held.values())
            case _:
                continue
        if others > 1:
            yield f"revision {seen.revision}: {seen.kind} {seen.name} is one of {others} for the same owner"


def doubled_submissions(runs: Sequence[Run], attempts: dict[str, int]) -> Iterator[str]:
    """Submissions that Ray took although the job's earlier one had not failed. `attempts`: allowed, by RayJob."""
    by_job: dict[str, list[Run]] = {}
    for run in runs:
        by_job.setdefault(run.job, []).append(run)
    for job, own in by_job.items():
        for earlier, later in pairwise(own):
            if earlier.status(later.began) != "FAILED" or earlier.submission == later.submission:
                state = earlier.status(later.began)
                yield f"RayJob {job}: {later.submission} was submitted while {earlier.submission} was {state}"
        if len(own) > attempts.get(job, 1):
            yield f"RayJob {job}: {len(own)} submissions, {attempts.get(job, 1)} attempts are allowed"


def wrong_verdicts(history: Iterable[Seen], runs: Sequence[Run]) -> Iterator[str]:
    """RayJobs that ended otherwise than in Ray, or before, or that ended and went on."""
    by_submission = {run.submission: run for run in runs}
    last: dict[str, Job] = {}
    for seen in history:
        job = seen.held
        if not isinstance(job, Job):
            continue
        before = last.get(job.uid)
        last[job.uid] = job
        where = f"revision {seen.revision}: RayJob {seen.name}"
        if before is not None and before.phase in TERMINAL:
            if (job.phase, job.ray) != (before.phase, before.ray):
                yield f"{where} was {before.phase}/{before.ray} and is {job.phase}/{job.ray}"
        elif job.phase in TERMINAL:
            run = by_submission.get(job.attempt)
            truth = run.status(seen.at) if run is not None else "never submitted"
            expected = {"SUCCEEDED": "Complete", "FAILED": "Failed"}.get(truth)
            if job.phase != expected or job.ray != truth:
                yield f"{where} is {job.phase}/{job.ray}, in Ray it is {truth}"


class Write(NamedTuple):
    """A write of the audit log. `by`: the process. `roots`: names of the custom resources it may have been made for."""

    at: float
    by: str
    verb: str
    resource: str
    name: str
    code: int
    roots: tuple[str, ...]

    @property
    def applied(self) -> bool:
        return 200 <= self.code < 300


class Thaw(NamedTuple):
    """A process that went on at `at` after it had been frozen."""

    by: str
    at: float


def partition(namespace: str, root: str) -> int:
    """FNV-1a, 32 bit, modulo 16 (design §3)."""
    value = 2166136261
    for byte in f"{namespace}/{root}".encode():
        value = (value ^ byte) * 16777619 % 2**32
    return value % 16
