"""An imitation of Ray on all simulated heads: a new head pod knows nothing of what an earlier one was told.

What a job does stands in its entrypoint (`plan`): how long each attempt takes and how it ends.
"""

import json
import time
from dataclasses import dataclass
from urllib.parse import unquote

from history import Cluster, History, Pod

KNOWN = "Please use a different submission_id."


@dataclass
class Run:
    """One accepted submission. Times by the wall clock; `ends`: when it ends with `outcome`."""

    job: str
    submission: str
    head: str
    began: float
    ends: float
    outcome: str

    def status(self, now: float) -> str:
        return self.outcome if now >= self.ends else "RUNNING"


def plan(job: str, outcomes: list[str], seconds: float) -> str:
    """The entrypoint of a job whose attempts end with `outcomes`, each after `seconds`."""
    return f"python train.py --job={job} --ends={','.join(outcomes)} --after={seconds:g}"


def read_plan(entrypoint: str) -> tuple[str, list[str], float]:
    """The inverse of `plan`."""
    words = dict(word[2:].split("=", 1) for word in entrypoint.split() if word.startswith("--"))
    return words["job"], words["ends"].split(","), float(words["after"])


class Ray:
    """`runs`: all that was ever accepted, in order. `known`: how often an id was submitted to a head that had it."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.runs: list[Run] = []
        self.known = 0
        self._hurry = False

    def finish(self) -> None:
        """From now on, jobs end at once: those that run and those to come."""
        self._hurry = True
        now = time.time()
        for run in self.runs:
            run.ends = min(run.ends, now)

    def answer(self, service: str, method: str, rest: str, body: bytes) -> tuple[int, str]:
        """What the head behind that Service says: status and JSON."""
        head = self._head(service.removesuffix("-head-svc"))
        if not head:
            return 503, json.dumps({"message": f"no endpoints available for service {service}"})
        if method == "POST" and rest == "/api/jobs/":
            return self._submit(head, json.loads(body))
        name, _, verb = rest.removeprefix("/api/jobs/").partition("/")
        run = next((r for r in self.runs if r.head == head and r.submission == unquote(name)), None)
        if run is None:
            return 404, json.dumps(f"Job {name} does not exist")
        now = time.time()
        if verb == "stop":
            running = run.status(now) == "RUNNING"
            if running:
                run.ends, run.outcome = now, "STOPPED"
            return 200, json.dumps({"stopped": running})
        return 200, json.dumps(_shown(run, now))

    def _submit(self, head: str, body: dict[str, str]) -> tuple[int, str]:
        name = body["submission_id"]
        if any(run.head == head and run.submission == name for run in self.runs):
            self.known += 1
            return 500, json.dumps(KNOWN)
        job, outcomes, seconds = read_plan(body["entrypoint"])
        attempt = sum(run.job == job for run in self.runs)
        now = time.time()
        ends = now + (0 if self._hurry else seconds)
        self.runs.append(Run(job, name, head, now, ends, outcomes[min(attempt, len(outcomes) - 1)]))
        return 200, json.dumps({"job_id": name, "submission_id": name})

    def _head(self, cluster: str) -> str:
        """UID of the pod that the Service leads to now; "" without one that is ready."""
        held = self._history.now.get(("raycluster", cluster))
        if not isinstance(held, Cluster):
            return ""
        pods = (pod for _, pod in self._history.of("pod") if isinstance(pod, Pod))
        return next((p.uid for p in pods if p.owner == held.uid and p.head and p.usable and p.ready), "")


def _shown(run: Run, now: float) -> dict[str, object]:
    status = run.status(now)
    return {
        "type": "SUBMISSION",
        "submission_id": run.submission,
        "entrypoint": "python train.py",
        "status": status,
        "message": f"the job is {status}",
        "start_time": int(run.began * 1000),
        "end_time": None if status == "RUNNING" else int(run.ends * 1000),
    }
