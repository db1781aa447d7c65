"""Clusters that are not ours: one behind a given kubeconfig, or one that kind runs in Docker."""

import base64
import json
import os
import subprocess
from pathlib import Path

import yaml

from raybus.dev.choice import Provider
from raybus.dev.control_plane import SERVICES, apply_api_objects
from raybus.dev.errors import DevError
from raybus.dev.gotools import ensure_tools
from raybus.dev.kubectl import Kubectl
from raybus.dev.options import ClusterOptions
from raybus.dev.pki import KeyPair, kubeconfig, signing_request, write_private
from raybus.dev.progress import step

_SIGNED_WITHIN_S = 30


def up(options: ClusterOptions, folder: Path, provider: Provider) -> str:
    """Make the foreign cluster ready for Raybus: CRDs, RBAC and a client certificate per service. Returns its URL.

    Raises `DevError` when the kubeconfig does not work or kind fails.
    """
    admin = folder / "kubeconfig" / "admin.yaml"
    kubectl = Kubectl(ensure_tools(["kubectl"])["kubectl"], admin)
    if provider is Provider.KIND:
        _create_kind(options.name, admin)
    else:
        assert options.kubeconfig is not None
        if not options.kubeconfig.is_file():
            raise DevError(f"There is no kubeconfig at {options.kubeconfig}: give the path of an existing one.")
        # Flattened: with certificates inline, and only of the context in use.
        given = Kubectl(kubectl.program, options.kubeconfig)
        write_private(admin, given("config", "view", "--raw", "--flatten", "--minify"))
    cluster = yaml.safe_load(admin.read_text())["clusters"][0]["cluster"]
    apply_api_objects(kubectl, bare=False)
    with step("asking the cluster for client certificates"):
        for service in SERVICES:
            _issue(kubectl, service, cluster)
    return str(cluster["server"])


def down(name: str, provider: Provider) -> None:
    """Delete a kind cluster; a given cluster is left as it is."""
    if provider is Provider.KIND:
        _kind("delete", "cluster", "--name", f"raybus-{name}")


def _create_kind(name: str, admin: Path) -> None:
    admin.parent.mkdir(parents=True, exist_ok=True)
    if f"raybus-{name}" in _kind("get", "clusters").split():
        _kind("export", "kubeconfig", "--name", f"raybus-{name}", "--kubeconfig", str(admin))
        return
    with step(f"creating the kind cluster raybus-{name}", 60):
        _kind("create", "cluster", "--name", f"raybus-{name}", "--kubeconfig", str(admin), "--wait", "120s")


def _kind(*arguments: str) -> str:
    done = subprocess.run(["kind", *arguments], capture_output=True, text=True, env=os.environ, check=False)
    if done.returncode != 0:
        raise DevError(f"kind {' '.join(arguments[:2])} failed: {done.stderr.strip()[-400:]}")
    return done.stdout


def _issue(kubectl: Kubectl, service: str, cluster: dict[str, str]) -> None:
    """Let the cluster itself sign a client certificate for user `raybus:<service>`, and write its kubeconfig."""
    request = signing_request(f"raybus:{service}")
    name = f"raybus-dev-{service}"
    manifest = {
        "apiVersion": "certificates.k8s.io/v1",
        "kind": "CertificateSigningRequest",
        "metadata": {"name": name},
        "spec": {
            "request": base64.b64encode(request.certificate).decode(),
            "signerName": "kubernetes.io/kube-apiserver-client",
            "usages": ["client auth"],
        },
    }
    kubectl("delete", "csr", name, "--ignore-not-found")
    kubectl("create", "-f", "-", stdin=json.dumps(manifest))
    kubectl("certificate", "approve", name)
    kubectl("wait", f"--timeout={_SIGNED_WITHIN_S}s", "--for=jsonpath={.status.certificate}", f"csr/{name}")
    signed = base64.b64decode(kubectl("get", "csr", name, "-o", "jsonpath={.status.certificate}"))
    authority = base64.b64decode(cluster.get("certificate-authority-data", ""))
    text = kubeconfig(cluster["server"], authority, KeyPair(signed, request.key))
    write_private(kubectl.kubeconfig.with_name(f"{service}.yaml"), text)
