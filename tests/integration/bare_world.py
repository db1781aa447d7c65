"""What a test plays on a cluster without nodes: the kubelet, the endpoints and Ray's dashboard."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

from raybus.dev.kubectl import Kubectl

T = TypeVar("T")
Json = dict[str, Any]

POD = {"containers": [{"name": "ray", "image": "rayproject/ray:2.55.0"}]}


def ray_cluster(name: str, workers: int = 1, pod: Json | None = None) -> Json:
    """A RayCluster of a head and one group."""
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayCluster",
        "metadata": {"name": name},
        "spec": cluster_spec(workers, pod),
    }


def cluster_spec(workers: int = 1, pod: Json | None = None) -> Json:
    """The spec of such a cluster."""
    template = {"spec": pod or POD}
    group = {"groupName": "g", "replicas": workers, "minReplicas": 0, "maxReplicas": 10, "rayStartParams": {}}
    return {
        "rayVersion": "2.55.0",
        "headGroupSpec": {"rayStartParams": {}, "template": template},
        "workerGroupSpecs": [group | {"template": template}] if workers else [],
    }


def ray_job(name: str, **spec: Any) -> Json:
    """A RayJob on a head without workers."""
    base: Json = {"entrypoint": "python -c 1", "rayClusterSpec": cluster_spec(0)}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": name}, "spec": base | spec}


class BareWorld:
    """One namespace of a bare cluster, and the hands of everybody who is missing there.

    `pause`: seconds between two looks.
    """

    pause = 0.1

    def __init__(self, kubectl: Kubectl, namespace: str) -> None:
        self.kubectl, self.namespace = kubectl, namespace

    def apply(self, *objects: Json) -> None:
        """Create or change objects."""
        for item in objects:
            self.kubectl("apply", "-n", self.namespace, "--server-side", "-f", "-", stdin=json.dumps(item))

    def list(self, kind: str, *more: str) -> list[Json]:
        """Objects of a kind, oldest name first."""
        items: list[Json] = self.kubectl.json("get", kind, "-n", self.namespace, *more)["items"]
        return items

    def get(self, kind: str, name: str) -> Json | None:
        """One object, None when it is not there."""
        return next((item for item in self.list(kind) if item["metadata"]["name"] == name), None)

    def wait(self, what: str, condition: Callable[[], T | None], seconds: float = 20.0) -> T:
        """The first true value of `condition`; fails with `what` and the objects' states after `seconds`."""
        deadline = time.monotonic() + seconds
        while not (value := condition()):
            if time.monotonic() > deadline:
                states = {
                    f"{o['kind']}/{o['metadata']['name']}": o.get("status") for o in self.list("rayclusters,rayjobs")
                }
                raise AssertionError(f"not within {seconds:.0f} s: {what}; {json.dumps(states)}")
            time.sleep(self.pause)
        return value

    def status(self, kind: str, name: str) -> Json:
        """The status of one object, {} without one."""
        item = self.get(kind, name)
        return (item or {}).get("status") or {}

    def set_status(self, kind: str, name: str, status: Json) -> None:
        """Write a status as whoever owns it would."""
        patch = json.dumps({"status": status})
        self.kubectl("patch", kind, name, "-n", self.namespace, "--subresource=status", "--type=merge", "-p", patch)

    def pods_ready(self, count: int, address: str = "") -> Sequence[Json]:
        """Wait for `count` pods, then let all of them run and be ready; `address`: that of the first, the head."""
        pods = self.wait(f"{count} pods", lambda: found if len(found := self.list("pods")) >= count else None)
        for number, pod in enumerate(pods, 10):
            given = address if address and number == 10 else f"10.99.1.{number}"
            conditions = [{"type": kind, "status": "True"} for kind in ("PodScheduled", "Initialized", "Ready")]
            status = {"phase": "Running", "conditions": conditions, "podIP": given, "podIPs": [{"ip": given}]}
            self.set_status("pod", pod["metadata"]["name"], status)
        return pods

    def endpoints(self, service: str, address: str, port: int) -> None:
        """Let the port `dashboard` of a Service lead to `address:port`; the API server's proxy goes to addresses of
        pods only."""
        pod = next(pod["metadata"] for pod in self.list("pods") if pod["status"].get("podIP") == address)
        target = {"kind": "Pod", "name": pod["name"], "namespace": self.namespace, "uid": pod["uid"]}
        subset = {
            "addresses": [{"ip": address, "targetRef": target}],
            "ports": [{"name": "dashboard", "port": port, "protocol": "TCP"}],
        }
        self.apply({"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": service}, "subsets": [subset]})


class Dashboard:
    """An imitation of Ray's dashboard. `jobs`: submission id -> answer; `calls`: (method, path) in order; `submits`:
    how many POSTs were taken."""

    def __init__(self) -> None:
        self.jobs: dict[str, Json] = {}
        self.calls: list[tuple[str, str]] = []
        self.first = {"status": "RUNNING", "message": "running", "start_time": 1_700_000_000_000}

    @contextmanager
    def serve(self, address: str) -> Iterator[int]:
        """Answer on a free port of `address` while the block runs; yields the port."""
        board = self

        class Handler(BaseHTTPRequestHandler):
            def _say(self, code: int, body: Json | str) -> None:
                data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(code)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                board.calls.append(("GET", self.path))
                job = board.jobs.get(self.path.removeprefix("/api/jobs/"))
                self._say(200, job) if job else self._say(404, "no such job")

            def do_POST(self) -> None:
                board.calls.append(("POST", self.path))
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                if self.path.endswith("/stop"):
                    self._say(200, {"stopped": True})
                    return
                name = body["submission_id"]
                if name in board.jobs:
                    self._say(500, "Please use a different submission_id.")
                    return
                board.jobs[name] = board.first | {"submission_id": name, "entrypoint": body["entrypoint"]}
                self._say(200, {"job_id": name, "submission_id": name})

            def log_message(self, format: str, *args: Any) -> None:
                pass

        server = ThreadingHTTPServer((address, 0), Handler)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()
            server.server_close()
