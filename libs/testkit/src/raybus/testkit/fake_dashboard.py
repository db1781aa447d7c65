"""A Ray dashboard on loopback: health, job calls and the log's WebSocket, as Ray 2.55 answers them.

Each log connection runs the next function of `tails` (the last one again and again), which says byte by byte what the
connection does: a real socket with scripted content.
"""

import base64
import hashlib
import json
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_TRACE = "Traceback (most recent call last):\n  ...\nRuntimeError: Request failed with status code 400: {}\n."


class TailConnection:
    """The server's side of one log connection, after the handshake."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def send(self, data: bytes, *, opcode: int = 1, final: bool = True) -> None:
        """One frame."""
        length = len(data)
        if length < 126:
            size = bytes([length])
        else:
            size = b"\x7e" + struct.pack("!H", length) if length < 65536 else b"\x7f" + struct.pack("!Q", length)
        self.send_raw(bytes([0x80 * final | opcode]) + size + data)

    def send_raw(self, data: bytes) -> None:
        self._sock.sendall(data)

    def close(self, code: int = 1000) -> None:
        """A close frame, and wait for the client's."""
        self.send(code.to_bytes(2, "big"), opcode=8)
        self.read()

    def read(self) -> bytes:
        """What the client sends next; b"" when it is gone."""
        try:
            return self._sock.recv(4096)
        except OSError:
            return b""

    def wait_until_gone(self) -> None:
        while self.read():
            pass


Tail = Callable[[TailConnection], None]


class FakeDashboard:
    """healthy; jobs: id -> what `GET /api/jobs/<id>` answers; log: what `GET /api/jobs/<id>/logs` answers, None = Ray
    cannot read it; tails: see above; token: wanted in every call but the health check, "" = none; submit_errors:
    (status, body) for the next submit calls; requests: "METHOD path" of all calls; bodies: of the submit calls."""

    def __init__(self) -> None:
        self.healthy = True
        self.jobs: dict[str, dict[str, Any]] = {}
        self.log: str | None = ""
        self.tails: list[Tail] = []
        self.token = ""
        self.submit_errors: list[tuple[int, str]] = []
        self.requests: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.address = ""

    def end(self, job_id: str, status: str = "SUCCEEDED", **more: Any) -> None:
        """The job's end."""
        self.jobs[job_id] = {"status": status, "message": f"Job ended as {status}.", **more}

    @contextmanager
    def serving(self, tls: ssl.SSLContext | None = None) -> Iterator["FakeDashboard"]:
        """Listen on a free port of loopback; `address` is host:port."""
        server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        server.daemon_threads = True
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        self.address = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            server.server_close()
            thread.join()

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, str]:
        """Status and body of every call but the log's."""
        if path == "/api/gcs_healthz":
            return (200, "success") if self.healthy else (503, "Health check failed")
        if (method, path) == ("POST", "/api/jobs/"):
            return self._submit(json.loads(body))
        job_id, _, action = path.removeprefix("/api/jobs/").partition("/")
        job = self.jobs.get(job_id)
        if job is None:
            return 404, f"Job {job_id} does not exist"
        if action == "logs":
            return (200, json.dumps({"logs": self.log})) if self.log is not None else (500, "UnicodeDecodeError: 0xff")
        if action == "stop":
            return 200, json.dumps({"stopped": job["status"] in ("PENDING", "RUNNING")})
        return 200, json.dumps({"type": "SUBMISSION", "submission_id": job_id, **job})

    def _submit(self, request: dict[str, Any]) -> tuple[int, str]:
        self.bodies.append(request)
        if self.submit_errors:
            return self.submit_errors.pop(0)
        job_id = request["submission_id"]
        if job_id in self.jobs:
            known = f"Job with submission_id {job_id} already exists. Please use a different submission_id."
            return 500, _TRACE.format(known)
        self.jobs[job_id] = {"status": "PENDING", "message": None, "entrypoint": request["entrypoint"]}
        return 200, json.dumps({"job_id": job_id, "submission_id": job_id})

    def next_tail(self) -> Tail:
        return self.tails.pop(0) if len(self.tails) > 1 else self.tails[0]


def _handler(dashboard: FakeDashboard) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            dashboard.requests.append(f"{self.command} {self.path}")
            wanted = f"Bearer {dashboard.token}"
            if dashboard.token and self.path != "/api/gcs_healthz" and self.headers["x-ray-authorization"] != wanted:
                self.reply(401, "Unauthorized: Missing authentication token")
            elif self.path.endswith("/logs/tail") and self.path.split("/")[3] in dashboard.jobs:
                self.tail()
            else:
                self.reply(*dashboard.answer(self.command, self.path, body))

        do_GET = do_POST = do

        def reply(self, status: int, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(text.encode())))
            self.end_headers()
            self.wfile.write(text.encode())

        def tail(self) -> None:
            key = self.headers["Sec-WebSocket-Key"].encode()
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "upgrade")
            accept = base64.b64encode(hashlib.sha1(key + _GUID).digest()).decode()
            self.send_header("Sec-WebSocket-Accept", accept)
            self.end_headers()
            self.wfile.flush()
            self.close_connection = True
            try:
                dashboard.next_tail()(TailConnection(self.connection))
            except OSError:
                return  # the client is gone

        def log_message(self, format: str, *args: Any) -> None:
            return

    return Handler
