"""The `Sender` of the services: HTTP/1.1 with the credentials of one API server (design §6, ADR 0093)."""

import asyncio
import ssl
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlencode, urlsplit

from raybus.kube.config import Access, ConfigError, Credentials, load_credentials
from raybus.kube.errors import of_answer, shorten
from raybus.kube.port import KubeError, Rejected, Request, Response, Transient
from raybus.kube.wire import Address, Answer, Broken, Headers, Wire
from raybus.telemetry import metrics

TOKEN_AGE = 60.0
"""Seconds that a token read from a file is used (the kubelet replaces it at 80 % of its life)."""
EARLY = 30.0
"""Seconds before its end at which a credential is loaded anew."""
_RELOAD_PAUSE = 5.0
_MAX_ERROR_BODY = 64 * 1024


class Client:
    """Sends requests to one API server (`port.Sender`); made by `connect`, to be used as `async with`."""

    def __init__(self, access: Access, credentials: Credentials, agent: str) -> None:
        self._access, self._agent = access, agent
        self._reloading = asyncio.Lock()
        self._wires: list[Wire] = []
        self._install(credentials)

    def _install(self, credentials: Credentials) -> None:
        """Use these credentials from now on; requests under way end on the connections that they began on."""
        wire = Wire(_address(credentials))
        self._wires.append(wire)
        for old in self._wires[:-1]:
            old.close()
        self._credentials, self._wire = credentials, wire
        self._url = credentials.server.rstrip("/")
        self._host, self._prefix = urlsplit(self._url).netloc, urlsplit(self._url).path
        self._loaded = time.monotonic()
        self._token = credentials.authorization
        self._token_read = float("-inf")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for wire in self._wires:
            wire.close()

    async def send(self, request: Request) -> Response:
        """One whole exchange within `request.timeout`. Raises Transient, Rejected or Bug."""
        try:
            async with asyncio.timeout(request.timeout):
                for fresh in (False, True):
                    headers = self._headers(request, await self._authorization(fresh))
                    call = self._wire.call(request.method, self._target(request), headers, request.body)
                    answer = await self._counted(request, call)
                    if answer.status < 300:
                        return Response(status=answer.status, body=answer.body)
                    if answer.status != 401 or fresh or not self._may_reload():
                        break
        except TimeoutError as error:
            text = f"{request.method} {request.path}: no answer from {self._url} within {request.timeout:g} s"
            raise Transient(text) from error
        except (Broken, OSError) as error:
            raise self._unreachable(request, error) from error
        raise self._refused(request, answer)

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The body in chunks as they arrive, at most for `request.timeout`. Raises Transient, Rejected or Bug."""
        deadline = asyncio.get_running_loop().time() + request.timeout
        try:
            for fresh in (False, True):
                async with asyncio.timeout_at(deadline):
                    headers = self._headers(request, await self._authorization(fresh))
                async with aclosing(self._wire.stream(request.method, self._target(request), headers)) as pieces:
                    async with asyncio.timeout_at(deadline):
                        answer = await self._counted(request, anext(pieces))
                    if answer.status >= 300:
                        async with asyncio.timeout_at(deadline):
                            answer = answer._replace(body=b"".join([piece.body async for piece in pieces]))
                    else:
                        async for chunk in _until(pieces, deadline):
                            yield chunk
                        return
                if answer.status != 401 or fresh or not self._may_reload():
                    break
        except TimeoutError as error:
            raise Transient(f"GET {request.path}: {self._url} sent nothing more, ended by us", sent=False) from error
        except (Broken, OSError) as error:
            raise self._unreachable(request, error) from error
        raise self._refused(request, answer)

    async def _counted(self, request: Request, call: Awaitable[Answer]) -> Answer:
        """The answer of `call`, counted as client-go counts it (ADR 0131)."""
        begun, code = time.monotonic(), "<error>"
        try:
            answer = await call
            code = str(answer.status)
            return answer
        finally:
            metrics.REQUESTS.labels(code, request.method, self._host).inc()
            metrics.REQUEST_SECONDS.labels(request.method, self._host).observe(time.monotonic() - begun)

    def _refused(self, request: Request, answer: Answer) -> KubeError:
        body = answer.body[:_MAX_ERROR_BODY]
        error = of_answer(request, answer.status, body, answer.headers.get("retry-after", ""))
        if isinstance(error, Rejected) and error.code == 401:
            text = f"the API server does not accept the credentials of {self._credentials.source}: {error.message}"
            return Rejected(401, error.reason, text)
        return error

    @property
    def server(self) -> str:
        """The URL of the API server, without a final slash."""
        return self._url

    async def forward(self, method: str, target: str, headers: Headers, body: bytes, most: int) -> Answer:
        """Send somebody else's request to a path of `server`, with our credentials (for the service proxy).

        The answer, of at most `most` bytes, is returned whatever its status. Raises Transient without credentials,
        Broken and OSError.
        """
        authorization = await self._authorization(False)
        ours = (("authorization", authorization),) if authorization else ()
        return await self._wire.call(method, target, (*headers, *ours), body, most)

    def _target(self, request: Request) -> str:
        return f"{self._prefix}{request.path}" + (f"?{urlencode(request.query)}" if request.query else "")

    def _headers(self, request: Request, authorization: str) -> Headers:
        headers = [("accept", "application/json"), ("user-agent", self._agent)]
        if authorization:
            headers.append(("authorization", authorization))
        if request.body:
            headers.append(("content-type", request.content_type))
        return headers

    async def _authorization(self, fresh: bool) -> str:
        expires = self._credentials.expires
        if fresh or (expires and time.time() > expires - EARLY and self._may_reload()):
            await self._reload()
        if self._credentials.token_file and (fresh or time.monotonic() - self._token_read > TOKEN_AGE):
            self._token = f"Bearer {_read_token(self._credentials.token_file)}"
            self._token_read = time.monotonic()
        return self._token

    def _may_reload(self) -> bool:
        return time.monotonic() - self._loaded > _RELOAD_PAUSE

    async def _reload(self) -> None:
        """Load the credentials anew, once for all requests that wait for it; the present ones stay if that fails."""
        seen = self._loaded
        async with self._reloading:
            if self._loaded != seen:
                return
            try:
                self._install(await load_credentials(self._access))
            except ConfigError as error:
                self._loaded = time.monotonic()
                raise Transient(str(error), sent=False) from error

    def _unreachable(self, request: Request, error: Exception) -> KubeError:
        """What a broken connection means; only a connection that never came about has certainly sent nothing."""
        sent = error.sent if isinstance(error, Broken) else True
        verb = "lost the connection to" if sent else "cannot reach"
        why = shorten(str(error)) or "closed"
        return Transient(f"{request.method} {request.path}: {verb} the API server at {self._url} ({why})", sent=sent)


async def connect(access: Access, agent: str) -> Client:
    """Read the configuration and make a client; the server is not asked yet. `agent`: the User-Agent, which audit
    logs and metrics of the API server show. Raises ConfigError."""
    return Client(access, await load_credentials(access), agent)


async def _until(pieces: AsyncGenerator[Answer, None], deadline: float) -> AsyncGenerator[bytes, None]:
    """The bodies of `pieces`. Raises TimeoutError."""
    while True:
        async with asyncio.timeout_at(deadline):
            piece = await anext(pieces, None)
        if piece is None:
            return
        yield piece.body


def _address(credentials: Credentials) -> Address:
    """Where to connect to. Raises ConfigError for a URL or proxy that cannot be used."""
    try:
        url, proxy = urlsplit(credentials.server), urlsplit(credentials.proxy)
        port = url.port or (443 if url.scheme == "https" else 80)
        usable = url.scheme in ("http", "https") and url.hostname and (not credentials.proxy or proxy.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(f"the server {credentials.server!r} of {credentials.source} is no URL of an API server")
    if credentials.proxy and proxy.scheme != "http":
        raise ConfigError(f"the proxy of {credentials.source} cannot be used: only http:// proxies can")
    tls = ssl_context(credentials) if url.scheme == "https" else None
    return Address(url.hostname or "", port, tls, credentials.tls_server_name, credentials.proxy)


def ssl_context(credentials: Credentials) -> ssl.SSLContext:
    """The TLS settings of a connection. Raises ConfigError for certificates that cannot be read."""
    try:
        context = ssl.create_default_context(cadata=credentials.ca or None)
        # Certificates of clusters often lack the key usage that Python 3.13 asks for by default.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not credentials.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if credentials.cert:
            _load_client_certificate(context, credentials)
    except (ssl.SSLError, ValueError) as error:
        raise ConfigError(f"the certificates of {credentials.source} cannot be used: {error}") from error
    return context


def _load_client_certificate(context: ssl.SSLContext, credentials: Credentials) -> None:
    """OpenSSL reads certificates from files only; this one exists for an instant, readable by us alone."""
    with tempfile.TemporaryDirectory(prefix="raybus-") as folder:
        pair = Path(folder) / "client.pem"
        pair.touch(mode=0o600)
        pair.write_text(f"{credentials.cert}\n{credentials.key}")
        context.load_cert_chain(pair)


def _read_token(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        text = f"the service account token {file} cannot be read: {error.strerror}"
        raise Transient(text, sent=False) from error
