"""Ray in memory: a dashboard for each head pod of the API server in memory, and the submitters of K8sJobMode.

A head knows the jobs that were submitted to it, runs them for as long as their entrypoint says (`work <seconds>
<SUCCEEDED|FAILED>`), refuses an id that it knows, and forgets everything with its pod or when its container restarts.
Dashboards are reached by the name of a Service, as inside a cluster, through the transport that `raybus.ray` uses.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextvars import Context
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import httpx
import msgspec

from raybus.api.decision import Json
from raybus.api.times import Instant
from raybus.testkit.api_controllers import Delay, later
from raybus.testkit.fake_api import FakeApi
from raybus.testkit.fake_kubelet import Kubelet, is_ready

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
PENDING_SECONDS = 0.5


@dataclass
class RayJob:
    """One job of one head; times are true (virtual) seconds. `stopped`: when somebody stopped it."""

    submitted: float
    runs: float
    result: str
    stopped: float | None = None

    def status(self, now: float) -> str:
        """What Ray says of it at `now`."""
        if self.stopped is not None:
            return "STOPPED"
        if now < self.submitted + PENDING_SECONDS:
            return "PENDING"
        return "RUNNING" if now < self.ends else self.result

    @property
    def ends(self) -> float:
        """When it ends, or ended."""
        return self.stopped if self.stopped is not None else self.submitted + PENDING_SECONDS + self.runs


@dataclass
class Head:
    """One head pod's dashboard. `mode`: dead = refuses connections, hanging = accepts and never answers."""

    uid: str
    jobs: dict[str, RayJob] = field(default_factory=dict)
    mode: Literal["ok", "dead", "hanging"] = "ok"


class Call(NamedTuple):
    """One request that reached, or tried to reach, a dashboard; `head` "" = nobody answers to the name; `job_id` of a
    submission."""

    at: float
    client: str
    method: str
    path: str
    head: str
    answered: bool
    job_id: str = ""


class FakeRay:
    """All dashboards. `now`: wall clock of the heads; `observers` are told of every call when it has begun."""

    def __init__(self, api: FakeApi, now: Callable[[], Instant]) -> None:
        self._api, self._now = api, now
        self.heads: dict[str, Head] = {}
        self.said: dict[str, set[str]] = {}
        """Job id -> every status that anybody was told of it, whatever became of its head."""
        self.observers: list[Callable[[Call], None]] = []

    def head(self, uid: str) -> Head:
        """The dashboard of a head pod, made when first asked for."""
        return self.heads.setdefault(uid, Head(uid))

    def resolve(self, host: str) -> Head | None:
        """The dashboard behind `<service>.<namespace>.svc.…`: that of a ready head pod."""
        service_name, namespace, *_ = host.split(".")
        service = self._api.store.get("Service", (namespace, service_name))
        if service is None:
            return None
        selector = service["spec"].get("selector") or {}
        for pod in self._api.store.all("Pod", namespace):
            labels = pod["metadata"].get("labels") or {}
            fits = selector and all(labels.get(key) == value for key, value in selector.items())
            if fits and is_ready(pod) and "deletionTimestamp" not in pod["metadata"]:
                return self.head(pod["metadata"]["uid"])
        return None

    def truth(self, job_id: str) -> list[tuple[str, str]]:
        """(head pod's UID, status) of every head that knows the job."""
        now = asyncio.get_running_loop().time()
        return [(uid, head.jobs[job_id].status(now)) for uid, head in self.heads.items() if job_id in head.jobs]

    def transport(self, client: str, delay: Callable[[], float]) -> "Transport":
        """The way of the process `client` to all dashboards."""
        return Transport(self, client, delay)

    def tell(self, client: str, method: str, path: str, head: Head | None, body: bytes = b"") -> None:
        """Tell the observers of a call."""
        job_id = msgspec.json.decode(body)["submission_id"] if body else ""
        call = Call(
            asyncio.get_running_loop().time(),
            client,
            method,
            path,
            head.uid if head else "",
            head is not None and head.mode == "ok",
            job_id,
        )
        for observer in self.observers:
            observer(call)

    def answer(self, head: Head, method: str, path: str, body: bytes) -> tuple[int, bytes]:
        """What a head answers to one request, carried out."""
        now = asyncio.get_running_loop().time()
        parts = path.strip("/").split("/")
        match method, parts:
            case "GET", ["api", "gcs_healthz"]:
                return 200, b"success"
            case "POST", ["api", "jobs"]:
                return self.submit(head, msgspec.json.decode(body))
            case "GET", ["api", "jobs", job_id] if job_id in head.jobs:
                self.said.setdefault(job_id, set()).add(head.jobs[job_id].status(now))
                return 200, self._details(head.jobs[job_id], now)
            case "POST", ["api", "jobs", job_id, "stop"] if job_id in head.jobs:
                job = head.jobs[job_id]
                running = job.status(now) not in ENDED
                job.stopped = now if running else job.stopped
                return 200, msgspec.json.encode({"stopped": running})
            case _, ["api", "jobs", job_id, *_]:
                return 404, f"Job {job_id} does not exist".encode()
            case _:
                return 404, b"404: Not Found"

    def submit(self, head: Head, request: Json) -> tuple[int, bytes]:
        """Take a job, unless its id is known."""
        job_id = request["submission_id"]
        if job_id in head.jobs:
            text = f"Job with submission_id {job_id} already exists. Please use a different submission_id."
            return 500, text.encode()
        _, seconds, result = request["entrypoint"].split()
        head.jobs[job_id] = RayJob(asyncio.get_running_loop().time(), float(seconds), result)
        return 200, msgspec.json.encode({"job_id": job_id, "submission_id": job_id})

    def _details(self, job: RayJob, now: float) -> bytes:
        status, offset = job.status(now), self._now() - now
        ended = int((job.ends + offset) * 1000) if status in ENDED else None
        details = {"status": status, "message": f"job is {status}", "start_time": int((job.submitted + offset) * 1000)}
        return msgspec.json.encode({**details, "end_time": ended})


class _Body(httpx.AsyncByteStream):
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._data


class Transport(httpx.AsyncBaseTransport):
    """Carries requests to dashboards; what was sent takes effect whatever becomes of its sender."""

    def __init__(self, ray: FakeRay, client: str, delay: Callable[[], float]) -> None:
        self._ray, self._client, self._delay = ray, client, delay

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Raises httpx.ConnectError for a head that is not there; waits for ever for one that hangs."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[tuple[int, bytes] | None] = loop.create_future()
        loop.call_later(self._delay(), self._arrive, request, answer, context=Context())
        found = await answer
        if found is None:
            raise httpx.ConnectError("connection refused", request=request)
        return httpx.Response(found[0], stream=_Body(found[1]))

    def _arrive(self, request: httpx.Request, answer: asyncio.Future[tuple[int, bytes] | None]) -> None:
        head = self._ray.resolve(request.url.host)
        self._ray.tell(self._client, request.method, request.url.path, head, request.content)
        if head is not None and head.mode == "hanging":
            return
        outcome = None
        if head is not None and head.mode == "ok":
            outcome = self._ray.answer(head, request.method, request.url.path, request.content)
        if not answer.done():
            answer.set_result(outcome)


class Submitters:
    """What the container of a submitter's pod does: wait for the dashboard, submit unless known, wait for the end.

    `patience`: seconds without a dashboard after which it gives up. `falls`: whether this one crashes on its way.
    """

    def __init__(self, ray: FakeRay, kubelet: Kubelet, delay: Delay, patience: float = 60.0) -> None:
        self._ray, self._kubelet, self._delay, self._patience = ray, kubelet, delay, patience
        self.falls: Callable[[], bool] = lambda: False

    def run(self, pod: Json) -> None:
        """A pod's containers have started; those that are no submitters run for ever."""
        container = pod["spec"]["containers"][0]
        env = {item["name"]: item.get("value", "") for item in container.get("env") or ()}
        if "RAY_JOB_SUBMISSION_ID" in env:
            entrypoint = container["args"][-1]
            later(self._delay("submitter"), self._turn, pod["metadata"]["uid"], env, entrypoint, 0.0)

    def _turn(self, uid: str, env: dict[str, str], entrypoint: str, waited: float) -> None:
        """One look at the dashboard. `waited` < 0: the job was known there before."""
        pod = self._kubelet.pod(uid)
        if pod is None or pod["status"]["phase"] != "Running" or "deletionTimestamp" in pod["metadata"]:
            return
        job_id, head = env["RAY_JOB_SUBMISSION_ID"], self._ray.resolve(env["RAY_DASHBOARD_ADDRESS"])
        if head is None or head.mode != "ok":
            if abs(waited) > self._patience:
                self._kubelet.end(uid, 1)
            else:
                later(2.0, self._turn, uid, env, entrypoint, waited - 2.0 if waited < 0 else waited + 2.0)
            return
        if self.falls() or (waited < 0 and job_id not in head.jobs):
            self._kubelet.end(uid, 1)
            return
        if job_id not in head.jobs:
            self._ray.tell(uid, "POST", "/api/jobs/", head)
            self._ray.submit(head, {"submission_id": job_id, "entrypoint": entrypoint})
        if head.jobs[job_id].status(asyncio.get_running_loop().time()) in ENDED:
            self._kubelet.end(uid, 0)
        else:
            later(1.0, self._turn, uid, env, entrypoint, -1.0)
