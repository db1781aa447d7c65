"""A namespace on the real node, the RayJobs that tests run there, and ways to disturb them."""

import json
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bare_world import BareWorld, Json

COUNTING = """
import pathlib
import time

import ray


@ray.remote
def square(number):
    return number * number


ray.init()
with pathlib.Path("/tmp/starts").open("a") as starts:
    starts.write("x")
number = 0
while number < 100 or not pathlib.Path("/tmp/finish").exists():
    number += 1
    print(f"line {number}", flush=True)
    time.sleep(0.05)
print(f"square {ray.get(square.remote(number))}", flush=True)
print(f"starts {len(pathlib.Path('/tmp/starts').read_text())}", flush=True)
"""
"""Prints numbered lines, twenty a second, until the test wants it to end; counts how often it was started on a head."""

READY = 300.0
"""Seconds for a Ray head to start: 25 on two idle cores, several times that on busy ones."""
SOON = 120.0
"""Seconds for everything that needs no Ray start."""


def head_only(image: str = "rayproject/ray:2.55.0", cpu: str = "200m", program: str | None = None) -> Json:
    """Spec of a RayCluster of one head with one Ray CPU; its `/app` is the ConfigMap `program`."""
    resources = {"requests": {"cpu": cpu, "memory": "1Gi"}, "limits": {"memory": "3Gi"}}
    container: Json = {"name": "ray-head", "image": image, "resources": resources}
    pod: Json = {"containers": [container]}
    if program is not None:
        container["volumeMounts"] = [{"name": "program", "mountPath": "/app"}]
        pod["volumes"] = [{"name": "program", "configMap": {"name": program}}]
    head = {"rayStartParams": {"num-cpus": "1"}, "template": {"spec": pod}}
    return {"rayVersion": "2.55.0", "headGroupSpec": head}


class RayWorld(BareWorld):
    """One namespace on a real node with all services at work."""

    # A look costs a tenth of a second of a core, and Ray needs both for its start.
    pause = 1.0

    def run(self, name: str, program: str, **spec: Any) -> None:
        """Apply a RayJob that runs the Python `program` on a head without workers."""
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"main.py": program}}
        base = {"entrypoint": "python /app/main.py", "rayClusterSpec": head_only(program=name)}
        job = {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}, "spec": base | spec}
        self.apply(config, job)

    def phase(self, job: str, phase: str, seconds: float = SOON) -> Json:
        """The status of a RayJob once it is in that phase; fails at once when it has ended in another one."""

        def look() -> Json | None:
            status = self.status("rayjob", job)
            now = status.get("jobDeploymentStatus")
            if now in ("Complete", "Failed", "ValidationFailed") and now != phase:
                raise AssertionError(f"RayJob {job} is {now} and not {phase}: {status}")
            return status if now == phase else None

        return self.wait(f"RayJob {job} is {phase}", look, seconds)

    def head(self, job: str) -> Json:
        """The present head pod of a RayJob's cluster."""
        cluster = self.wait(f"the cluster of {job}", lambda: self.status("rayjob", job).get("rayClusterName"))
        label = f"ray.io/cluster={cluster},ray.io/node-type=head"

        def present() -> Json | None:
            pods = self.list("pods", "-l", label)
            return next((pod for pod in pods if "deletionTimestamp" not in pod["metadata"]), None)

        return self.wait(f"the head of {job}", present, SOON)

    def submitters(self, job: str) -> Sequence[Json]:
        """Pods of a RayJob's submitter that are not being deleted."""
        pods = self.list("pods", "-l", f"batch.kubernetes.io/job-name={job}")
        return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]

    def submitter(self, job: str, besides: str = "") -> str:
        """Name of the submitter pod of a RayJob once its container has begun; not the pod `besides`."""

        def begun() -> str | None:
            names = [p["metadata"]["name"] for p in self.submitters(job) if p["status"]["phase"] != "Pending"]
            return next((name for name in names if name != besides), None)

        return self.wait(f"the submitter of {job}", begun, READY)

    def log(self, pod: str) -> str:
        """What a pod has printed so far."""
        return self.kubectl("logs", pod, "-n", self.namespace)

    def printed(self, pod: str, text: str, seconds: float = SOON) -> str:
        """The log of a pod once it holds `text`."""
        return self.wait(f"{pod} prints {text!r}", lambda: log if text in (log := self.log(pod)) else None, seconds)

    def more_lines(self, pod: str, count: int = 20) -> int:
        """The number of the last line of a counting program in the log of `pod`, once `count` more have come."""
        before = len(numbers(self.log(pod)))
        return self.wait(
            f"{count} more lines in the log of {pod}",
            lambda: seen[-1] if len(seen := numbers(self.log(pod))) >= before + count else None,
            SOON,
        )

    def finish(self, job: str) -> None:
        """Let a counting program end."""
        self.kubectl("exec", self.head(job)["metadata"]["name"], "-n", self.namespace, "--", "touch", "/tmp/finish")

    def submissions(self, job: str) -> list[Json]:
        """What Ray's dashboard says of the jobs that it was given."""
        service = f"{self.status('rayjob', job)['rayClusterName']}-head-svc"
        path = f"/api/v1/namespaces/{self.namespace}/services/{service}:dashboard/proxy/api/jobs/"
        jobs: list[Json] = json.loads(self.kubectl("get", "--raw", path))
        return jobs


def numbers(log: str) -> list[int]:
    """The numbers of the lines of a counting program, in the order of the log."""
    return [int(number) for number in re.findall(r"^line (\d+)$", log, re.MULTILINE)]


def check_whole(log: str) -> None:
    """The log of a counting program has each line once and in order, and its end; it ran once and succeeded."""
    seen = numbers(log)
    assert seen == list(range(1, len(seen) + 1)), f"lines lost, doubled or out of order: {log[-3000:]}"
    lines = log.splitlines()
    assert lines[-3:-1] == [f"square {len(seen) ** 2}", "starts 1"], log[-600:]
    assert re.fullmatch(r"SUCC -- Job '\S+' succeeded", lines[-1]), log[-600:]


@contextmanager
def cut_off(pod: Json, port: int) -> Iterator[None]:
    """While the block runs, whoever sends to that port of a pod is answered by a TCP reset, whether he was connected
    before or not."""
    rule = ["INPUT", "-p", "tcp", "--dport", str(port), "-j", "REJECT", "--reject-with", "tcp-reset"]
    inside = ["nsenter", f"--net=/proc/{_process_of(pod)}/ns/net", "iptables", "-w"]
    subprocess.run([*inside, "-I", *rule], check=True)
    try:
        yield
    finally:
        subprocess.run([*inside, "-D", *rule], check=True)


def _process_of(pod: Json) -> int:
    """Any process of a pod on this machine: its control group is named after the pod, by systemd with underscores."""
    group = f"pod{pod['metadata']['uid']}".replace("-", "_")
    for path in Path("/proc").glob("[0-9]*/cgroup"):
        try:
            if group in path.read_text().replace("-", "_"):
                return int(path.parent.name)
        except (FileNotFoundError, ProcessLookupError):
            continue
    raise AssertionError(f"pod {pod['metadata']['name']} has no process on this machine")
