"""The components of a real node and their configuration files, as pure functions of the site.

What was found out on small machines (ADR 0012): root without CAP_SYS_RESOURCE needs `restrict_oom_score_adj`; control
groups of version 1 need `failCgroupV1: false` and the cgroupfs driver; there is no registry, so nothing may be pulled.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import yaml

from raybus.dev.images.library import PAUSE_IMAGE
from raybus.dev.network import BRIDGE
from raybus.dev.process import Component
from raybus.dev.site import CLUSTER_DOMAIN, NODE_NAME, Site, image_store


def group(site: Site) -> str:
    """Control group of everything that the node's pods run."""
    return f"raybus-{site.name}"


def state_folder(site: Site) -> Path:
    """Run-time state of containerd. Not in the cache folder: paths of sockets have to be short."""
    return Path("/run/raybus") / site.name


def socket(site: Site) -> Path:
    """containerd's socket."""
    return state_folder(site) / "containerd.sock"


def node_folder(site: Site) -> Path:
    """Files of the node."""
    return site.folder / "node"


def files(site: Site) -> dict[Path, str]:
    """Configuration files of the node's components, by path."""
    folder = node_folder(site)
    return {
        folder / "cni" / "10-raybus.conflist": json.dumps(_cni(site)),
        folder / "containerd.toml": _containerd(site),
        folder / "kubelet.yaml": yaml.safe_dump(_kubelet(site)),
        folder / "Corefile": _corefile(site),
    }


def containerd(site: Site, program: str) -> Component:
    """The container runtime, Debian's own."""
    return Component("containerd", (program, "-c", str(node_folder(site) / "containerd.toml")))


def kubelet(site: Site, tools: Mapping[str, Path]) -> Component:
    """The kubelet of the one node."""
    arguments = (
        f"--kubeconfig={site.kubeconfig('node')}",
        f"--config={node_folder(site) / 'kubelet.yaml'}",
        f"--hostname-override={NODE_NAME}",
        f"--node-ip={site.layout.networks.node}",
        f"--root-dir={node_folder(site) / 'kubelet'}",
    )
    return Component("kubelet", (str(tools["kubelet"]), *arguments))


def kube_proxy(site: Site, tools: Mapping[str, Path]) -> Component:
    """Service addresses by iptables. Connection tracking limits belong to the host and are left alone."""
    arguments = (
        f"--kubeconfig={site.kubeconfig('proxy')}",
        f"--hostname-override={NODE_NAME}",
        f"--cluster-cidr={site.layout.networks.pods}",
        "--proxy-mode=iptables",
        "--conntrack-max-per-core=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
    )
    return Component("kube-proxy", (str(tools["kube-proxy"]), *arguments))


def coredns(site: Site, tools: Mapping[str, Path]) -> Component:
    """Cluster DNS, as a process on the node's bridge address."""
    return Component("coredns", (str(tools["coredns"]), "-conf", str(node_folder(site) / "Corefile")))


def _cni(site: Site) -> dict[str, object]:
    addresses = {
        "type": "host-local",
        "dataDir": str(state_folder(site) / "addresses"),
        "ranges": [[{"subnet": site.layout.networks.pods}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": False,
        "hairpinMode": True,
        "ipam": addresses,
    }
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": f"raybus-{site.name}", "plugins": [bridge, ports]}


def _containerd(site: Site) -> str:
    return f"""version = 2
root = "{image_store(site.folder)}"
state = "{state_folder(site) / "containerd"}"
[grpc]
  address = "{socket(site)}"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  sandbox_image = "{PAUSE_IMAGE}"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{node_folder(site) / "cni"}"
"""


def _kubelet(site: Site) -> dict[str, object]:
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(site.pki / "ca.crt")},
        },
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{group(site)}",
        "clusterDNS": [site.layout.networks.bridge],
        "clusterDomain": CLUSTER_DOMAIN,
        "containerRuntimeEndpoint": f"unix://{socket(site)}",
        "evictionHard": {"memory.available": "100Mi"},
        "failCgroupV1": False,
        "failSwapOn": False,
        "imageGCHighThresholdPercent": 100,
        "maxPods": 500,
        "podLogsDir": str(node_folder(site) / "pod-logs"),
        "resolvConf": "",
        "serializeImagePulls": False,
        "tlsCertFile": str(site.pki / "kubelet.crt"),
        "tlsPrivateKeyFile": str(site.pki / "kubelet.key"),
    }


def _corefile(site: Site) -> str:
    return f"""{CLUSTER_DOMAIN}:53 in-addr.arpa:53 {{
    bind {site.layout.networks.bridge}
    errors
    health 127.0.0.1:8080
    kubernetes {CLUSTER_DOMAIN} in-addr.arpa {{
        kubeconfig {site.kubeconfig("admin")}
        pods insecure
        ttl 5
    }}
}}
"""
