"""Which way calls to dashboards take: by service DNS, or through the API server (contract rayjob §5.1)."""

import asyncio
from contextlib import AsyncExitStack

from raybus.kube.client import connect
from raybus.kube.config import Access, ConfigError
from raybus.kube.proxy import ProxyTransport
from raybus.prober.dashboards import RayDashboards, Tokens
from raybus.prober.settings import ProberSettings
from raybus.ray.address import direct, through_api_server
from raybus.ray.client import Dashboard, direct_transport
from raybus.runtime.service import Fatal


async def dashboards(settings: ProberSettings, stack: AsyncExitStack) -> RayDashboards:
    """The way to dashboards that the settings ask for; `stack` closes it. Raises Fatal."""
    if not settings.use_kubernetes_proxy and not settings.read_auth_tokens:
        transport = await stack.enter_async_context(direct_transport())
        return RayDashboards(Dashboard(transport), lambda _, head, token: direct(head.url, token), None)
    try:
        client = await stack.enter_async_context(await connect(Access(kubeconfig=settings.kubeconfig), "raybus-prober"))
    except ConfigError as error:
        raise Fatal(str(error)) from error
    tokens = Tokens(client, asyncio.get_running_loop().time) if settings.read_auth_tokens else None
    if not settings.use_kubernetes_proxy:
        transport = await stack.enter_async_context(direct_transport())
        return RayDashboards(Dashboard(transport), lambda _, head, token: direct(head.url, token), tokens)
    proxy = Dashboard(ProxyTransport(client))
    return RayDashboards(proxy, lambda ns, h, token: through_api_server(client.server, ns, h.service, token), tokens)
