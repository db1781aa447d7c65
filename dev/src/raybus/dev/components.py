"""The command lines of the control plane, as pure functions of the site.

What is unusual here serves a cluster that lives for a day on two cores: no fsync in etcd, no leader elections, generous
client rates, and a node monitor that forgives late heart-beats (a simulated node that was late must not mark all of its
pods unready in the middle of a measurement).
"""

from collections.abc import Mapping
from pathlib import Path

from raybus.dev.process import Component
from raybus.dev.site import Site

# What acts in the recordings of `tests/golden`: garbage collection, namespaces, service accounts and nothing else.
BARE_CONTROLLERS = (
    "garbage-collector-controller",
    "namespace-controller",
    "serviceaccount-controller",
    "serviceaccount-token-controller",
)

Tools = Mapping[str, Path]


def etcd(site: Site, tools: Tools) -> Component:
    """The store, on loopback; its data goes with the cluster."""
    ports = site.layout.ports
    client, peer = (f"http://127.0.0.1:{ports[name]}" for name in ("etcd-client", "etcd-peer"))
    return _component(
        "etcd",
        tools["etcd"],
        f"--data-dir={site.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        f"--quota-backend-bytes={8 << 30}",
    )


def apiserver(site: Site, tools: Tools, audited: bool = False) -> Component:
    """The API server; with a real node it announces the address at which pods reach it. `audited`: see the options."""
    pki = site.pki
    audit = [
        f"--audit-policy-file={site.audit_policy}",
        f"--audit-log-path={site.audit_log}",
        "--storage-media-type=application/json",
    ]
    return _component(
        "kube-apiserver",
        tools["kube-apiserver"],
        f"--etcd-servers=http://127.0.0.1:{site.layout.ports['etcd-client']}",
        f"--bind-address={site.address}",
        f"--advertise-address={site.address}",
        f"--endpoint-reconciler-type={'lease' if site.has_node else 'none'}",
        f"--secure-port={site.layout.ports['apiserver']}",
        f"--service-cluster-ip-range={site.layout.networks.services}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--kubelet-client-certificate={pki / 'kubelet-client.crt'}",
        f"--kubelet-client-key={pki / 'kubelet-client.key'}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-key-file={pki / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged",
        *(audit if audited else []),
    )


def controller_manager(site: Site, tools: Tools, bare: bool) -> Component:
    """All controllers, or for a bare cluster only `BARE_CONTROLLERS`."""
    pki = site.pki
    return _component(
        "kube-controller-manager",
        tools["kube-controller-manager"],
        f"--kubeconfig={site.kubeconfig('controller-manager')}",
        f"--controllers={','.join(BARE_CONTROLLERS) if bare else '*'}",
        f"--service-account-private-key-file={pki / 'service-accounts.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        f"--cluster-signing-cert-file={pki / 'ca.crt'}",
        f"--cluster-signing-key-file={pki / 'ca.key'}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--secure-port=0",
        "--node-monitor-grace-period=3h",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--concurrent-service-endpoint-syncs=10",
        "--concurrent-gc-syncs=20",
    )


def scheduler(site: Site, tools: Tools) -> Component:
    """The scheduler with rates that let a few hundred pods through at once."""
    return _component(
        "kube-scheduler",
        tools["kube-scheduler"],
        f"--kubeconfig={site.kubeconfig('scheduler')}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=1000",
        "--kube-api-burst=2000",
    )


def kwok(site: Site, tools: Tools, stages: Path) -> Component:
    """The program that plays kubelet for simulated nodes; `stages`: how it moves nodes and pods along."""
    return _component(
        "kwok",
        tools["kwok"],
        f"--kubeconfig={site.kubeconfig('admin')}",
        f"--config={stages}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--node-lease-duration-seconds=200",
    )


def _component(name: str, program: Path, *arguments: str) -> Component:
    return Component(name, (str(program), *arguments))
