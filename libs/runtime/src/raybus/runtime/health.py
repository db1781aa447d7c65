"""Health and metrics over HTTP: `/livez` (the loop turns), `/readyz` (every check passes), `/metrics`.

`/healthz` is KubeRay's name of `/livez` (contract platform §6).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from raybus.telemetry.metrics import exposition

Check = Callable[[], str]
"""Says why the service is not ready, "" when it is."""

log = structlog.get_logger()


class Health:
    """The checks of one process; answering at all shows that its event loop turns."""

    def __init__(self) -> None:
        self.checks: dict[str, Check] = {}

    def problems(self) -> list[str]:
        """One line per check that does not pass."""
        return [f"{name}: {why}" for name, check in self.checks.items() if (why := check())]

    def answer(self, path: str) -> tuple[int, str, bytes]:
        """(HTTP status, content type, body) for a GET of `path`."""
        match path:
            case "/livez" | "/healthz":
                return 200, "text/plain", b"ok\n"
            case "/readyz":
                problems = self.problems()
                return (503 if problems else 200), "text/plain", ("\n".join(problems) or "ok").encode() + b"\n"
            case "/metrics":
                return 200, "text/plain; version=0.0.4; charset=utf-8", exposition()
            case _:
                return 404, "text/plain", b"known: /livez /readyz /metrics\n"

    async def serve(self, address: str) -> asyncio.Server | None:
        """Listen on `host:port` (host empty = all, port 0 = a free one); None when `address` is `0` or empty.

        Raises OSError when the address is taken.
        """
        if address in ("", "0"):
            return None
        host, _, port = address.rpartition(":")
        server = await asyncio.start_server(self._connection, host or None, int(port))
        log.info("listening for health and metrics", address=server.sockets[0].getsockname()[:2])
        return server

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            words = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
            path = words[1].split("?")[0] if len(words) == 3 else ""
            status, kind, body = self.answer(path)
            writer.write(
                f"HTTP/1.1 {status} {'OK' if status == 200 else 'ERROR'}\r\nContent-Type: {kind}\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        writer.close()
