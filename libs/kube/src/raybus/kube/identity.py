"""Which cluster an API server belongs to, so that two clusters never share one bus (ADR 0106)."""

import asyncio

import msgspec
import structlog
from msgspec import Struct

from raybus.kube.config import ConfigError
from raybus.kube.port import KubeError, Request, Sender, Transient

AGAIN = 1.0
"""Seconds between two attempts."""
PATIENCE = 10.0
"""Seconds for which a refusal is doubted: an API server that is coming up does not know the roles yet."""
SAY_EVERY = 5
"""Attempts between two lines in the log."""

_WHERE = Request(method="GET", path="/api/v1/namespaces/kube-system")

log = structlog.get_logger()


class _Meta(Struct):
    uid: str


class _Namespace(Struct):
    metadata: _Meta


async def cluster_identity(sender: Sender) -> str:
    """The UID of the namespace `kube-system`, which lives as long as its cluster. Waits, and says so, while the API
    server does not answer. Raises ConfigError when it refuses."""
    attempts = refusals = 0
    while True:
        try:
            answer = await sender.send(_WHERE)
            return msgspec.json.decode(answer.body, type=_Namespace).metadata.uid
        except Transient as error:
            if attempts % SAY_EVERY == 0:
                log.warning("waiting for the API server", why=str(error))
            refusals = 0
        except (KubeError, msgspec.MsgspecError) as error:
            refusals += 1
            if refusals * AGAIN > PATIENCE:
                raise ConfigError(
                    f"the namespace kube-system cannot be read, whose UID names the cluster: {error}"
                ) from error
        attempts += 1
        await asyncio.sleep(AGAIN)
