"""Stand-ins for the Ray dashboards of many heads behind one address, reached like the API server's service proxy.

Which head is asked stands in the path (`…/services/<head service>:dashboard/proxy/api/jobs/…`). Of every hundred heads
two accept and never answer, and one closes the connection at once.
"""

import asyncio
import re
import time
import zlib
from pathlib import Path
from typing import Any, Self

from aiohttp import web

RUNS = 3.0
"""Seconds that a job takes in Ray."""
_PATH = re.compile(r"/api/v1/namespaces/[^/]+/services/(?P<service>[^:/]+):dashboard/proxy(?P<rest>/.*)")


def kind_of(service: str) -> str:
    """`hangs`, `dead` or `well`, always the same for one head."""
    number = zlib.crc32(service.encode()) % 100
    return "hangs" if number < 2 else "dead" if number == 2 else "well"


class Dashboards:
    """`ended_at`: when each job ended in Ray, by the RayJob's name and the monotonic clock.

    `kube_system`: the namespace by whose UID the prober knows the cluster (ADR 0106).
    """

    def __init__(self, kube_system: dict[str, Any]) -> None:
        self._kube_system = kube_system
        self.ended_at: dict[str, float] = {}
        self._heads: set[str] = set()
        self._jobs: dict[str, tuple[str, float]] = {}
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, access_log=None)
        self._port = 0

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.shutdown()

    def kubeconfig(self, path: Path) -> Path:
        """A kubeconfig that leads here."""
        path.write_text(
            "apiVersion: v1\nkind: Config\ncurrent-context: x\n"
            f"clusters: [{{name: x, cluster: {{server: 'http://127.0.0.1:{self._port}'}}}}]\n"
            "users: [{name: x, user: {}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"
        )
        return path

    @property
    def met(self) -> int:
        """How many heads were asked something."""
        return len(self._heads)

    @property
    def healthy_jobs(self) -> set[str]:
        """RayJobs whose head answers."""
        return {_job_of(service) for service in self._heads if kind_of(service) == "well"}

    def count(self, kind: str) -> int:
        """How many heads of that kind were asked something."""
        return sum(kind_of(service) == kind for service in self._heads)

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.path == "/api/v1/namespaces/kube-system":
            return web.json_response(self._kube_system)
        found = _PATH.fullmatch(request.path)
        if found is None:
            return web.json_response({"message": "not found"}, status=404)
        service, rest = found["service"], found["rest"]
        self._heads.add(service)
        match kind_of(service):
            case "hangs":
                await asyncio.sleep(3600)
            case "dead":
                assert request.transport is not None
                request.transport.abort()
                return web.Response()
        if request.method == "POST" and rest == "/api/jobs/":
            return web.json_response(self._submit(service, await request.json()))
        return self._look(service, rest.removeprefix("/api/jobs/").partition("/")[0])

    def _submit(self, service: str, body: dict[str, Any]) -> dict[str, Any]:
        job = body["submission_id"]
        self._jobs.setdefault(job, (service, time.monotonic()))
        self.ended_at.setdefault(_job_of(service), time.monotonic() + RUNS)
        return {"job_id": job, "submission_id": job}

    def _look(self, service: str, job: str) -> web.Response:
        if job not in self._jobs:
            return web.Response(status=404, text=f"Job {job} does not exist")
        over = time.monotonic() >= self._jobs[job][1] + RUNS
        status = "SUCCEEDED" if over else "RUNNING"
        times = {"start_time": 1700000000000, "end_time": 1700000003000 if over else None}
        body = {"type": "SUBMISSION", "submission_id": job, "status": status, "message": "", **times}
        return web.json_response({**body, "entrypoint": "python -c 1"})


def _job_of(service: str) -> str:
    """The RayJob `j00001` of the head service `j00001-xxxxx-head-svc`."""
    return service.partition("-")[0]
