"""Calls to dashboards through `raybus.ray`, directly or through the API server's service proxy; their answers as
values (contract rayjob §5)."""

import base64
import binascii
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Struct

from raybus.api.decision import Head, Json, Ref
from raybus.api.messages import JobFact
from raybus.kube import request
from raybus.kube.port import KubeError, Sender
from raybus.prober.ports import Answer
from raybus.ray.address import Endpoint
from raybus.ray.answers import JobInfo, NotFound
from raybus.ray.client import Dashboard
from raybus.ray.errors import DashboardRefused, DashboardUnreachable

TOKEN_AGE = 60.0
"""Seconds for which a token that was read is used."""
TOKEN_TIMEOUT = 5.0
TOKEN_KEY = "auth_token"

Route = Callable[[str, Head, str], Endpoint]
"""(namespace, head, token) -> where its dashboard is."""


class NoToken(Exception):
    """A cluster with token authentication whose token cannot be had; `str()` says why."""


class _Secret(Struct):
    data: dict[str, str] = {}


class Tokens:
    """Tokens out of named Secrets, read one at a time and kept for a minute; never logged. `clock`: monotonic."""

    def __init__(self, sender: Sender, clock: Callable[[], float]) -> None:
        self._sender, self._clock = sender, clock
        self._known: dict[Ref, tuple[float, str]] = {}

    async def read(self, ref: Ref) -> str:
        """Raises NoToken."""
        read_at, token = self._known.get(ref, (float("-inf"), ""))
        if self._clock() - read_at < TOKEN_AGE:
            return token
        try:
            asked = msgspec.structs.replace(request.get(ref), timeout=TOKEN_TIMEOUT)
            secret = msgspec.json.decode((await self._sender.send(asked)).body, type=_Secret)
            token = base64.b64decode(secret.data[TOKEN_KEY], validate=True).decode()
        except KubeError as error:
            raise NoToken(f"the token of {ref} cannot be read: {error}") from error
        except KeyError as error:
            raise NoToken(f"{ref} has no key {TOKEN_KEY}") from error
        except (msgspec.MsgspecError, binascii.Error, UnicodeDecodeError) as error:
            raise NoToken(f"{ref} holds no readable {TOKEN_KEY}") from error
        self._known[ref] = (self._clock(), token)
        return token

    def forget(self, ref: Ref) -> None:
        """The dashboard did not accept it: read it anew next time."""
        self._known.pop(ref, None)


class RayDashboards:
    """Implements `ports.Dashboards`. `tokens`: None when this prober may not read Secrets."""

    def __init__(self, dashboard: Dashboard, route: Route, tokens: Tokens | None) -> None:
        self._dashboard, self._route, self._tokens = dashboard, route, tokens

    async def job(self, namespace: str, head: Head, job_id: str) -> Answer:
        async def call(endpoint: Endpoint) -> Answer:
            found = await self._dashboard.job(endpoint, job_id)
            return Answer(outcome="missing") if isinstance(found, NotFound) else Answer(outcome="ok", job=_fact(found))

        return await self._ask(namespace, head, call)

    async def submit(self, namespace: str, head: Head, job_id: str, request: Json) -> Answer:
        async def call(endpoint: Endpoint) -> Answer:
            await self._dashboard.submit(endpoint, request)
            return Answer(outcome="ok", final=True)

        return await self._ask(namespace, head, call)

    async def stop(self, namespace: str, head: Head, job_id: str) -> Answer:
        async def call(endpoint: Endpoint) -> Answer:
            found = await self._dashboard.stop(endpoint, job_id)
            return Answer(outcome="missing" if isinstance(found, NotFound) else "ok", final=True)

        return await self._ask(namespace, head, call)

    async def _ask(self, namespace: str, head: Head, call: Callable[[Endpoint], Awaitable[Answer]]) -> Answer:
        secret = Ref("Secret", namespace, head.token_secret)
        try:
            return await call(self._route(namespace, head, await self._token(secret)))
        except (DashboardUnreachable, NoToken) as error:
            return Answer(outcome="unreachable", text=str(error))
        except DashboardRefused as error:
            if error.status in (401, 403) and self._tokens is not None:
                self._tokens.forget(secret)
            final = 400 <= error.status < 500 and error.status not in (401, 403)
            return Answer(outcome="refused", text=str(error), final=final)

    async def _token(self, secret: Ref) -> str:
        if not secret.name:
            return ""
        if self._tokens is None:
            raise NoToken(f"the cluster asks for the token of {secret}, but the setting read-auth-tokens is off")
        return await self._tokens.read(secret)


def _fact(job: JobInfo) -> JobFact:
    return JobFact(status=job.status, message=job.message, start_time=job.start_time, end_time=job.end_time)
