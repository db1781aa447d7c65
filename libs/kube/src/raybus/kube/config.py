"""Where the API server is and how to prove who we are (ADR 0035).

The `kubernetes` package reads kubeconfig files, runs exec plugins and finds in-cluster credentials. It takes half a
second and 20 MB to import and blocks while a plugin runs, so it does that in a short-lived child process
(`credentials.py`), whose answer is one JSON document.
"""

import asyncio
import sys

import msgspec
from msgspec import Struct

from raybus.kube.port import KubeError

LOAD_TIMEOUT = 60.0
"""Seconds that an exec plugin may take (some open a browser)."""


class ConfigError(KubeError):
    """There is no usable configuration; `str()` says what to do."""


class Access(Struct, frozen=True, kw_only=True):
    """Which cluster: `kubeconfig` "" = $KUBECONFIG, else in-cluster, else ~/.kube/config; `context` "" = current."""

    kubeconfig: str = ""
    context: str = ""


class Credentials(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that a connection needs. PEM texts, "" = none.

    `authorization`: the header's value. `token_file`: read the bearer token from there again and again (in-cluster
    tokens live an hour). `expires`: seconds since the epoch after which to load anew, 0.0 = never.
    """

    server: str
    source: str
    authorization: str = ""
    token_file: str = ""
    expires: float = 0.0
    ca: str = ""
    cert: str = ""
    key: str = ""
    verify: bool = True
    tls_server_name: str = ""
    proxy: str = ""


class Answer(Struct, omit_defaults=True):
    """What the child process prints: one of the two."""

    credentials: Credentials | None = None
    error: str = ""


async def load_credentials(access: Access) -> Credentials:
    """Read the configuration in a child process. Raises ConfigError."""
    command = (sys.executable, "-m", "raybus.kube.credentials", access.kubeconfig, access.context)
    child = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, stdin=None)
    try:
        async with asyncio.timeout(LOAD_TIMEOUT):
            output, _ = await child.communicate()
    except TimeoutError as error:
        raise ConfigError(f"reading the Kubernetes configuration took more than {LOAD_TIMEOUT:.0f} s") from error
    finally:
        if child.returncode is None:
            child.kill()
    try:
        answer = msgspec.json.decode(output, type=Answer)
    except msgspec.MsgspecError as error:
        raise ConfigError(f"reading the Kubernetes configuration failed (exit code {child.returncode})") from error
    if answer.credentials is None:
        raise ConfigError(answer.error)
    return answer.credentials
