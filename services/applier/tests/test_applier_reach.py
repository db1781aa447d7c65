"""Whether the API server answers is known from the requests themselves, and asked for only while it does not."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from raybus.applier.reach import LOOK, PAUSE, Reach
from raybus.kube.port import KubeError, Rejected, Request, Response, Transient
from raybus.testkit.virtual_time import run_virtual

WRITE = Request(method="POST", path="/api/v1/namespaces/n/pods")


class Server:
    """Answers with `error`, or well. `seen`: paths that were asked for."""

    def __init__(self, error: KubeError | None) -> None:
        self.error = error
        self.seen: list[str] = []

    async def send(self, request: Request) -> Response:
        self.seen.append(request.path)
        if self.error is not None:
            raise self.error
        return Response(status=200, body=b"{}")

    async def stream(self, request: Request) -> AsyncIterator[bytes]:
        yield b""


async def looking(reach: Reach, seconds: float) -> None:
    """Let `reach` run for so long."""
    task = asyncio.create_task(reach.run())
    await asyncio.sleep(seconds)
    task.cancel()


def test_it_is_asked_once_at_the_start_and_then_left_alone() -> None:
    async def main() -> None:
        server = Server(None)
        reach = Reach(server)
        assert reach.problem() == "the API server has not answered yet"
        await looking(reach, 100)
        assert reach.problem() == "" and server.seen == [LOOK.path]

    run_virtual(main())


def test_a_request_without_an_answer_is_a_problem_until_there_is_one() -> None:
    async def main() -> None:
        server = Server(None)
        reach = Reach(server)
        await reach.send(WRITE)
        server.error = Transient("cannot reach it", sent=False)
        with pytest.raises(Transient):
            await reach.send(WRITE)
        assert reach.problem() == "cannot reach it"
        task = asyncio.create_task(looking(reach, 5 * PAUSE))
        await asyncio.sleep(2.5 * PAUSE)
        assert reach.problem() == "cannot reach it"
        server.error = None
        await task
        assert reach.problem() == "" and server.seen[-1] == LOOK.path

    run_virtual(main())


@pytest.mark.parametrize(
    "error", [Rejected(403, "Forbidden", "no"), Transient("busy", status=429)], ids=["refused", "busy"]
)
def test_a_server_that_refuses_or_is_busy_answers(error: KubeError) -> None:
    async def main() -> None:
        server = Server(None)
        reach = Reach(server)
        await reach.send(WRITE)
        server.error = error
        with pytest.raises(KubeError):
            await reach.send(WRITE)
        assert reach.problem() == ""

    run_virtual(main())


def test_credentials_that_are_not_accepted_are_a_problem() -> None:
    async def main() -> None:
        reach = Reach(Server(Rejected(401, "Unauthorized", "the credentials are not accepted")))
        await looking(reach, PAUSE / 2)
        assert reach.problem() == "the credentials are not accepted"

    run_virtual(main())
