"""Which way calls to dashboards take: by service DNS, or through the API server (contract rayjob §5.1)."""

import asyncio
from contextlib import AsyncExitStack

from raybus.kube.client import Client, connect
from raybus.kube.config import Access
from raybus.kube.proxy import ProxyTransport
from raybus.prober.dashboards import RayDashboards, Tokens
from raybus.prober.settings import ProberSettings
from raybus.ray.address import direct, through_api_server
from raybus.ray.client import Dashboard, direct_transport


async def kubernetes(settings: ProberSettings, stack: AsyncExitStack) -> Client | None:
    """A connection to the API server if the settings need one; `stack` closes it. Raises ConfigError."""
    if not settings.use_kubernetes_proxy and not settings.read_auth_tokens:
        return None
    return await stack.enter_async_context(await connect(Access(kubeconfig=settings.kubeconfig), "raybus-prober"))


async def dashboards(settings: ProberSettings, client: Client | None, stack: AsyncExitStack) -> RayDashboards:
    """The way to dashboards that the settings ask for; `stack` closes it."""
    tokens = Tokens(client, asyncio.get_running_loop().time) if client and settings.read_auth_tokens else None
    if client is None or not settings.use_kubernetes_proxy:
        transport = await stack.enter_async_context(direct_transport())
        return RayDashboards(Dashboard(transport), lambda _, head, token: direct(head.url, token), tokens)
    proxy = Dashboard(ProxyTransport(client))
    return RayDashboards(proxy, lambda ns, h, token: through_api_server(client.server, ns, h.service, token), tokens)
