"""The network of a real node: a namespace of its own, joined to the host by one link (ADR 0012).

Bridge, pod addresses and kube-proxy's iptables rules all live inside. So nothing of the host is changed but one link
and two routes, several nodes do not disturb each other, and removing the namespace removes everything.
"""

from pathlib import Path

from raybus.dev.process import Component
from raybus.dev.shell import run, succeeds
from raybus.dev.site import Site

BRIDGE = "cni0"


def make_network(site: Site) -> None:
    """Make namespace, link, bridge and routes as far as they are missing."""
    name, nets = namespace(site), site.layout.networks
    if not (Path("/run/netns") / name).exists():
        run("ip", "netns", "add", name)
    if not succeeds("ip", "link", "show", _link(site)):
        run("ip", "link", "add", _link(site), "type", "veth", "peer", "name", "eth0", "netns", name)
    if not succeeds("ip", "-n", name, "link", "show", BRIDGE):
        run("ip", "-n", name, "link", "add", BRIDGE, "type", "bridge")
    run("ip", "address", "replace", f"{nets.host}/30", "dev", _link(site))
    run("ip", "link", "set", _link(site), "up")
    run("ip", "-n", name, "address", "replace", f"{nets.node}/30", "dev", "eth0")
    run("ip", "-n", name, "address", "replace", f"{nets.bridge}/16", "dev", BRIDGE)
    for device in ("lo", "eth0", BRIDGE):
        run("ip", "-n", name, "link", "set", device, "up")
    run("ip", "-n", name, "route", "replace", "default", "via", nets.host)
    for network in (nets.pods, nets.services):
        run("ip", "route", "replace", network, "via", nets.node)
    run("nsenter", f"--net=/run/netns/{name}", "sysctl", "-qw", "net.ipv4.ip_forward=1")


def remove_network(site: Site) -> None:
    """Remove the namespace and the link; routes and rules go with them."""
    if succeeds("ip", "link", "show", _link(site)):
        run("ip", "link", "delete", _link(site))
    if (Path("/run/netns") / namespace(site)).exists():
        run("ip", "netns", "delete", namespace(site))


def inside(site: Site, component: Component) -> Component:
    """The same component, running in the node's network namespace.

    nsenter and not `ip netns exec`: the latter mounts /sys anew and hides the control groups.
    """
    return Component(component.name, ("/usr/bin/nsenter", f"--net=/run/netns/{namespace(site)}", *component.argv))


def namespace(site: Site) -> str:
    """Name of the node's network namespace."""
    return f"raybus-{site.name}"


def _link(site: Site) -> str:
    return f"raybus{site.layout.network_index}"
