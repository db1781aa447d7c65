"""The `Sender` of the services: httpx's aiohttp transport over kept-alive HTTP/1.1 connections (design §6).

The transport is called directly: cookies, redirects and proxy rules of `httpx.AsyncClient` cost more than the request
itself and are not wanted here.
"""

import asyncio
import socket
import ssl
import tempfile
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlencode, urlsplit

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from raybus.kube.config import Access, ConfigError, Credentials, load_credentials
from raybus.kube.errors import of_answer, shorten
from raybus.kube.port import KubeError, Rejected, Request, Response, Transient

CONNECT_TIMEOUT = 10.0
TOKEN_AGE = 60.0
"""Seconds that a token read from a file is used (the kubelet replaces it at 80 % of its life)."""
EARLY = 30.0
"""Seconds before its end at which a credential is loaded anew."""
_RELOAD_PAUSE = 5.0
_MAX_ERROR_BODY = 64 * 1024

# A peer that is gone without a word is noticed by TCP within about 25 s.
_KEEPALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 25_000),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


class Client:
    """Sends requests to one API server (`port.Sender`); made by `connect`, to be used as `async with`."""

    def __init__(self, access: Access, credentials: Credentials, agent: str) -> None:
        self._access, self._agent = access, agent
        self._reloading = asyncio.Lock()
        self._transports: list[AiohttpTransport] = []
        self._install(credentials)

    def _install(self, credentials: Credentials) -> None:
        """Use these credentials from now on; requests under way end on the transport that they began on."""
        transport = _transport(credentials)
        self._transports.append(transport)
        self._credentials, self._transport = credentials, transport
        self._url = credentials.server.rstrip("/")
        self._loaded = time.monotonic()
        self._token = credentials.authorization
        self._token_read = float("-inf")

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for transport in self._transports:
            await transport.aclose()

    async def send(self, request: Request) -> Response:
        """One whole exchange within `request.timeout`. Raises Transient, Rejected or Bug."""
        try:
            async with asyncio.timeout(request.timeout):
                response = await self._exchange(request)
                try:
                    body = await response.aread()
                finally:
                    await response.aclose()
        except TimeoutError as error:
            text = f"{request.method} {request.path}: no answer from {self._url} within {request.timeout:g} s"
            raise Transient(text) from error
        except (httpx.TransportError, aiohttp.ClientError, OSError) as error:
            raise self._unreachable(request, error) from error
        return Response(status=response.status_code, body=body)

    async def stream(self, request: Request) -> AsyncGenerator[bytes, None]:
        """The body in chunks as they arrive, at most for `request.timeout`. Raises Transient, Rejected or Bug."""
        deadline = asyncio.get_running_loop().time() + request.timeout
        response: httpx.Response | None = None
        try:
            async with asyncio.timeout_at(deadline):
                response = await self._exchange(request)
            chunks = response.aiter_raw()
            while True:
                async with asyncio.timeout_at(deadline):
                    chunk = await anext(chunks, None)
                if chunk is None:
                    return
                yield chunk
        except TimeoutError as error:
            raise Transient(f"GET {request.path}: {self._url} sent nothing more, ended by us", sent=False) from error
        except (httpx.TransportError, aiohttp.ClientError, OSError) as error:
            raise self._unreachable(request, error) from error
        finally:
            if response is not None:
                await response.aclose()

    async def _exchange(self, request: Request) -> httpx.Response:
        """The answer's head, once it is 2xx; a 401 is tried again with fresh credentials. Raises KubeError."""
        for fresh in (False, True):
            authorization = await self._authorization(fresh)
            response = await self._transport.handle_async_request(self._build(request, authorization))
            if response.status_code < 300:
                return response
            try:
                body = (await response.aread())[:_MAX_ERROR_BODY]
            finally:
                await response.aclose()
            error = of_answer(request, response.status_code, body, response.headers.get("retry-after", ""))
            if response.status_code != 401 or fresh or not self._may_reload():
                break
        if isinstance(error, Rejected) and error.code == 401:
            text = f"the API server does not accept the credentials of {self._credentials.source}: {error.message}"
            raise Rejected(401, error.reason, text)
        raise error

    @property
    def server(self) -> str:
        """The URL of the API server, without a final slash."""
        return self._url

    async def forward(self, request: httpx.Request) -> httpx.Response:
        """Send a request of someone else's making to `server`, with our credentials (for the service proxy).

        The answer is returned whatever its status. Raises Transient without credentials, and what httpx and aiohttp
        raise.
        """
        authorization = await self._authorization(False)
        if authorization:
            request.headers["authorization"] = authorization
        if self._credentials.tls_server_name:
            request.extensions = {**request.extensions, "sni_hostname": self._credentials.tls_server_name}
        return await self._transport.handle_async_request(request)

    def _build(self, request: Request, authorization: str) -> httpx.Request:
        url = f"{self._url}{request.path}" + (f"?{urlencode(request.query)}" if request.query else "")
        headers = {"accept": "application/json", "user-agent": self._agent}
        if authorization:
            headers["authorization"] = authorization
        if request.body:
            headers["content-type"] = request.content_type
        extensions: dict[str, object] = {"timeout": {"connect": CONNECT_TIMEOUT}}
        if self._credentials.tls_server_name:
            extensions["sni_hostname"] = self._credentials.tls_server_name
        return httpx.Request(request.method, url, headers=headers, content=request.body, extensions=extensions)

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
        cause = error.__cause__ if isinstance(error.__cause__, aiohttp.ClientError) else error
        sent = not isinstance(cause, aiohttp.ClientConnectorError)
        verb = "lost the connection to" if sent else "cannot reach"
        why = shorten(str(cause)) or "closed"
        return Transient(f"{request.method} {request.path}: {verb} the API server at {self._url} ({why})", sent=sent)


async def connect(access: Access, agent: str) -> Client:
    """Read the configuration and make a client; the server is not asked yet. `agent`: the User-Agent, which audit
    logs and metrics of the API server show. Raises ConfigError."""
    return Client(access, await load_credentials(access), agent)


def _transport(credentials: Credentials) -> AiohttpTransport:
    context = ssl_context(credentials) if urlsplit(credentials.server).scheme == "https" else None

    def session() -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            limit=0, keepalive_timeout=60.0, ssl=context or True, socket_factory=_socket, ttl_dns_cache=30
        )
        return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())

    proxy = httpx.Proxy(credentials.proxy) if credentials.proxy else None
    # The certificates that httpx would load for the transport's own context take 15 MB and are not used.
    return AiohttpTransport(verify=context or False, proxy=proxy, client=session)


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


def _socket(address: aiohttp.AddrInfoType) -> socket.socket:
    made = socket.socket(address[0], address[1], address[2])
    for level, option, value in _KEEPALIVE:
        made.setsockopt(level, option, value)
    return made


def _read_token(file: str) -> str:
    try:
        return Path(file).read_text().strip()
    except OSError as error:
        text = f"the service account token {file} cannot be read: {error.strerror}"
        raise Transient(text, sent=False) from error
