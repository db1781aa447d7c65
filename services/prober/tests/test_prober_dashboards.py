"""What the answers of dashboards become, and where tokens come from."""

import base64
from collections.abc import AsyncIterator

import httpx
import msgspec
import pytest

from raybus.api.decision import Head
from raybus.kube.port import KubeError, Rejected, Request, Response
from raybus.prober.dashboards import RayDashboards, Tokens
from raybus.prober.ports import Answer
from raybus.ray.address import direct
from raybus.ray.client import Dashboard

HEAD = Head(cluster="c", pod_uid="h", service="s", url="http://s:8265")
LOCKED = msgspec.structs.replace(HEAD, token_secret="c")


class Scripted(httpx.AsyncBaseTransport):
    """Answers every request with the same status and body; remembers the requests."""

    def __init__(self, status: int, body: bytes) -> None:
        self.status, self.body = status, body
        self.seen: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        return httpx.Response(self.status, stream=httpx.ByteStream(self.body))


class Secrets:
    """A sender that knows one Secret."""

    def __init__(self, body: object = None, error: KubeError | None = None) -> None:
        self.body, self.error, self.reads = body, error, 0

    async def send(self, request: Request) -> Response:
        self.reads += 1
        if self.error is not None:
            raise self.error
        return Response(status=200, body=msgspec.json.encode(self.body))

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        raise AssertionError("the prober never watches")


def dashboards(transport: Scripted, tokens: Tokens | None = None) -> RayDashboards:
    return RayDashboards(Dashboard(transport), lambda _, head, token: direct(head.url, token), tokens)


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, b'{"status": "RUNNING"}', "ok"),
        (404, b"Job j does not exist", "missing"),
        (404, b'{"apiVersion": "v1", "kind": "Status", "message": "services not found"}', "unreachable"),
        (500, b"Traceback", "refused"),
        (503, b"", "unreachable"),
    ],
)
async def test_answers_about_a_job(status: int, body: bytes, outcome: str) -> None:
    answer = await dashboards(Scripted(status, body)).job("ns", HEAD, "j")
    assert answer.outcome == outcome


async def test_the_calls_are_those_of_the_recordings() -> None:
    transport = Scripted(200, b'{"status": "RUNNING", "stopped": true}')
    ray = dashboards(transport)
    await ray.job("ns", HEAD, "j")
    await ray.submit("ns", HEAD, "j", {"entrypoint": "x", "submission_id": "j"})
    await ray.stop("ns", HEAD, "j")
    assert [f"{r.method} {r.url.path}" for r in transport.seen] == [
        "GET /api/jobs/j",
        "POST /api/jobs/",
        "POST /api/jobs/j/stop",
    ]


@pytest.mark.parametrize(
    ("status", "body", "expected"),
    [
        (200, b'{"submission_id": "j"}', ("ok", True)),
        (500, b"ValueError: ... Please use a different submission_id.", ("ok", True)),
        (500, b"No available agent to submit job", ("refused", False)),
        (400, b"bad runtime_env", ("refused", True)),
        (401, b"", ("refused", False)),
    ],
)
async def test_answers_to_a_submission(status: int, body: bytes, expected: tuple[str, bool]) -> None:
    answer = await dashboards(Scripted(status, body)).submit("ns", HEAD, "j", {"entrypoint": "x"})
    assert (answer.outcome, answer.final) == expected


def clocked(sender: Secrets, clock: list[float]) -> Tokens:
    return Tokens(sender, lambda: clock[0])


async def test_a_token_is_sent_and_kept_for_a_minute() -> None:
    transport, clock = Scripted(200, b'{"status": "RUNNING"}'), [0.0]
    secrets = Secrets({"data": {"auth_token": base64.b64encode(b"t0k").decode()}})
    ray = dashboards(transport, clocked(secrets, clock))
    await ray.job("ns", LOCKED, "j")
    await ray.job("ns", LOCKED, "j")
    assert transport.seen[0].headers["x-ray-authorization"] == "Bearer t0k" and secrets.reads == 1
    clock[0] = 61.0
    await ray.job("ns", LOCKED, "j")
    assert secrets.reads == 2


async def test_a_token_that_is_not_accepted_is_read_again() -> None:
    secrets = Secrets({"data": {"auth_token": base64.b64encode(b"t0k").decode()}})
    ray = dashboards(Scripted(401, b""), clocked(secrets, [0.0]))
    await ray.job("ns", LOCKED, "j")
    await ray.job("ns", LOCKED, "j")
    assert secrets.reads == 2


@pytest.mark.parametrize(
    ("secrets", "words"),
    [
        (Secrets(error=Rejected(404, "NotFound", "GET: not found")), "cannot be read"),
        (Secrets({"data": {}}), "has no key auth_token"),
        (Secrets({"data": {"auth_token": "%%%"}}), "no readable auth_token"),
        (None, "read-auth-tokens is off"),
    ],
)
async def test_a_missing_token_is_said_and_nothing_is_called(secrets: Secrets | None, words: str) -> None:
    transport = Scripted(200, b"{}")
    answer: Answer = await dashboards(transport, clocked(secrets, [0.0]) if secrets else None).job("ns", LOCKED, "j")
    assert answer.outcome == "unreachable" and words in answer.text and transport.seen == []
