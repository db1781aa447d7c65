"""Whether the API server answers: what `/readyz` of the applier says about it."""

import asyncio
from collections.abc import AsyncIterator

import structlog

from raybus.kube.port import KubeError, Request, Response, Sender, Transient

LOOK = Request(method="GET", path="/version", timeout=5.0)
"""Every user may ask this, and it reads nothing."""
PAUSE = 2.0
"""Seconds between two looks while the API server does not answer; while it does there are none."""

log = structlog.get_logger()


class Reach:
    """Sends for others (`port.Sender`) and remembers what a request that got no answer said."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self._trouble = "the API server has not answered yet"
        self._look = asyncio.Event()
        self._look.set()

    def problem(self) -> str:
        """Why nothing can be written at present, "" if it can."""
        return self._trouble

    async def send(self, request: Request) -> Response:
        """Raises as `port.Sender`."""
        try:
            response = await self._sender.send(request)
        except Transient as error:
            if not error.status:
                self._trouble = str(error)
                self._look.set()
            raise
        self._trouble = ""
        return response

    def stream(self, request: Request) -> AsyncIterator[bytes]:
        """See `port.Sender`."""
        return self._sender.stream(request)

    async def run(self) -> None:
        """At the start and after every request without an answer, look until there is one; until cancelled."""
        while True:
            await self._look.wait()
            said = False
            while self._trouble:
                try:
                    await self.send(LOOK)
                except KubeError as error:
                    self._trouble = str(error)
                    if not said:
                        log.warning("the API server does not answer, looking again", why=self._trouble)
                    said = True
                    await asyncio.sleep(PAUSE)
            if said:
                log.info("the API server answers again")
            self._look.clear()
