"""Bring up etcd, the API server and the controllers, and the API objects that Raybus needs in them."""

import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from importlib.resources import as_file, files
from pathlib import Path

from raybus.dev import components
from raybus.dev.errors import DevError
from raybus.dev.gotools import module_documents
from raybus.dev.kubectl import Kubectl
from raybus.dev.options import ClusterOptions
from raybus.dev.paths import repository
from raybus.dev.pki import Subject, ensure_authority, ensure_certificate, ensure_signing_key, kubeconfig, write_private
from raybus.dev.process import start
from raybus.dev.progress import say, step
from raybus.dev.site import CLUSTER_DOMAIN, NODE_NAME, Site
from raybus.dev.waiting import wait_until

SERVICES = ("watcher", "applier", "prober")

_CLIENTS = {
    "admin": Subject("raybus-dev-admin", "system:masters"),
    "controller-manager": Subject("system:kube-controller-manager"),
    "scheduler": Subject("system:kube-scheduler"),
    "node": Subject(f"system:node:{NODE_NAME}", "system:nodes"),
    "proxy": Subject("system:kube-proxy"),
    **{service: Subject(f"raybus:{service}") for service in SERVICES},
}


def write_credentials(site: Site) -> None:
    """All certificates and kubeconfigs of the cluster. The controllers of Raybus get none: they need none."""
    networks = site.layout.networks
    service = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{CLUSTER_DOMAIN}"]
    hosts = ("localhost", *service, "127.0.0.1", networks.host, networks.api_service)
    authority = ensure_authority(site.pki)
    ensure_signing_key(site.pki)
    ensure_certificate(site.pki, "apiserver", Subject("kube-apiserver", None, hosts))
    ensure_certificate(site.pki, "kubelet-client", Subject("kube-apiserver-kubelet-client", "system:masters"))
    ensure_certificate(site.pki, "kubelet", Subject(NODE_NAME, None, (NODE_NAME, networks.node)))
    for name, subject in _CLIENTS.items():
        client = ensure_certificate(site.pki, name, subject)
        write_private(site.kubeconfig(name), kubeconfig(site.server, authority.certificate, client))


def start_control_plane(site: Site, tools: Mapping[str, Path], options: ClusterOptions) -> None:
    """Start what is not running, and wait for the API server. Raises `DevError` when it does not come up."""
    with step(f"starting etcd and the API server at {site.server}", 6):
        start(components.etcd(site, tools), site.run)
        if options.audited:
            site.audit_policy.write_text((files("raybus.dev") / "manifests" / "audit.yaml").read_text())
        start(components.apiserver(site, tools, options.audited), site.run)
        wait_until(lambda: _is_ready(site), "the API server", 90, site.run, ("etcd", "kube-apiserver"))
    start(components.controller_manager(site, tools, options.bare), site.run)
    if not options.bare:
        start(components.scheduler(site, tools), site.run)


def apply_api_objects(kubectl: Kubectl, bare: bool) -> None:
    """Raybus' CRDs and RBAC, and for a bare cluster the foreign CRDs that the recordings know; waits for all CRDs."""
    with step("applying CRDs and RBAC"):
        root = repository()
        crds = sorted((root / "charts" / "raybus-crds").rglob("ray.io_*.yaml")) if root else []
        if not crds:
            say("charts/raybus-crds holds no CRDs: the cluster comes up without the kinds of ray.io")
        with as_file(files("raybus.dev") / "manifests" / "podgroups.yaml") as podgroups:
            crds += [*foreign_crds(), podgroups] if bare else []
            if crds:
                kubectl.apply(*crds)
        if crds:
            _wait_established(kubectl)
        if root:
            apply_rbac(kubectl, root / "charts" / "raybus" / "rbac")


def _wait_established(kubectl: Kubectl) -> None:
    """`kubectl wait` gives up at once on a CRD without any condition yet, as it is for an instant: ask again."""
    deadline = time.monotonic() + 60
    while True:
        try:
            kubectl("wait", "--for=condition=Established", "--timeout=60s", "crd", "--all")
            return
        except DevError as error:
            if "accessor error" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def foreign_crds() -> list[Path]:
    """CRDs of Gateway API and cert-manager, out of their Go modules."""
    gateways = ["config/crd/standard/*_gateways.yaml", "config/crd/standard/*_httproutes.yaml"]
    certificates = ["deploy/crds/cert-manager.io_certificates.yaml", "deploy/crds/cert-manager.io_issuers.yaml"]
    return [
        module_documents("crds", "sigs.k8s.io/gateway-api", gateways),
        module_documents("crds", "github.com/cert-manager/cert-manager", certificates),
    ]


def apply_rbac(kubectl: Kubectl, folder: Path) -> None:
    """The ClusterRole of each service as the chart has it, bound to the user in the service's client certificate."""
    kubectl.apply(*(folder / f"{service}.yaml" for service in SERVICES))
    kubectl.apply_text("\n---\n".join(map(binding, SERVICES)))


def binding(service: str) -> str:
    """Manifest that gives ClusterRole `raybus-<service>` to user `raybus:<service>`."""
    group = "rbac.authorization.k8s.io"
    return (
        f"apiVersion: {group}/v1\nkind: ClusterRoleBinding\nmetadata: {{name: raybus-dev-{service}}}\n"
        f"roleRef: {{apiGroup: {group}, kind: ClusterRole, name: raybus-{service}}}\n"
        f'subjects: [{{apiGroup: {group}, kind: User, name: "raybus:{service}"}}]\n'
    )


def _is_ready(site: Site) -> bool:
    """Asked directly, whatever proxy the environment names."""
    trusted = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=str(site.pki / "ca.crt")))
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), trusted)
    try:
        with opener.open(f"{site.server}/readyz", timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
