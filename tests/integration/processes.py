"""One service as a process, without a stack around it: what it says, and how it ends."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from raybus.testkit.nats_server import NatsServer, free_port


class Process:
    """A running service; its output is in `log`."""

    def __init__(self, service: str, log: Path, environment: Mapping[str, str], arguments: tuple[str, ...]) -> None:
        self.service, self.log, self.port = service, log, free_port()
        base = {k: v for k, v in os.environ.items() if k not in ("KUBECONFIG",) and not k.startswith("RAYBUS_")}
        common = {"RAYBUS_METRICS_ADDR": f"127.0.0.1:{self.port}", "RAYBUS_REPLICA": "a"}
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", f"raybus.{service.replace('-', '_')}", *arguments],
                env=base | common | dict(environment),
                stdout=output,
                stderr=output,
            )

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    def said(self) -> str:
        """All that it has said so far."""
        return self.log.read_text()

    def get(self, path: str) -> tuple[int, str]:
        """(HTTP status, body) of its listener for health and metrics; (0, why) while nobody listens."""
        return http_get(self.port, path)

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = 20.0) -> None:
        """Return when `condition` holds; fails with what the process has said."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds:.0f} s: {what}; it said:\n{self.said()}"
            time.sleep(0.05)

    def wait_ready(self) -> None:
        """Return when `/readyz` says ok."""
        self.wait("ready", lambda: self.get("/readyz") == (200, "ok\n"), seconds=40)

    def wait_not_ready(self, *words: str) -> None:
        """Return when `/readyz` refuses with all `words`."""

        def refuses() -> bool:
            status, body = self.get("/readyz")
            return status == 503 and all(word in body for word in words)

        self.wait(f"not ready because of {words}, last {self.get('/readyz')}", refuses)

    def ended(self, seconds: float = 15.0) -> int:
        """The exit status, once it has ended by itself."""
        return self._process.wait(seconds)

    def terminate(self) -> int:
        """Ask it to stop; the exit status."""
        self._process.send_signal(signal.SIGTERM)
        return self.ended()

    def kill(self) -> None:
        """SIGKILL, if it runs."""
        self._process.kill()
        self._process.wait()


@contextmanager
def process(service: str, folder: Path, environment: Mapping[str, str], *arguments: str) -> Iterator[Process]:
    """A service that runs for the block at most."""
    running = Process(service, folder / f"{service}.log", environment, arguments)
    try:
        yield running
    finally:
        running.kill()


def on_bus(server: NatsServer, service: str) -> dict[str, str]:
    """Settings with which a service finds the bus of a test."""
    return {"RAYBUS_NATS_URL": server.url, "RAYBUS_NATS_PASSWORD": service}


def http_get(port: int, path: str) -> tuple[int, str]:
    """(HTTP status, body) from this machine; (0, why) while nobody listens there."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=3) as answer:  # our own loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError as error:
        return 0, str(error)


class Relay:
    """A way to `address:port` that can be cut: everything is passed on while it is open."""

    def __init__(self, address: str, port: int) -> None:
        self._target = (address, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._pairs: list[socket.socket] = []
        self.port: int = self._server.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all that is open, and refuse whoever comes."""
        for one in (self._server, *self._pairs):
            # Closing alone does not wake a thread that reads.
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                one, _ = self._server.accept()
            except OSError:
                return
            other = socket.create_connection(self._target)
            self._pairs += [one, other]
            for source, sink in ((one, other), (other, one)):
                threading.Thread(target=_pump, args=(source, sink), daemon=True).start()


def _pump(source: socket.socket, sink: socket.socket) -> None:
    try:
        while data := source.recv(1 << 16):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return
