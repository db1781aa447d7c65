"""Issuers and Certificates that cert-manager turns into Secrets (contract objects §5.5)."""

from __future__ import annotations

from collections.abc import Iterable

from raybus.api.decision import Json
from raybus.api.v1 import RayCluster
from raybus.cluster_ctl import labels
from raybus.cluster_ctl.build import tls
from raybus.cluster_ctl.build.ownership import child_metadata

GROUP = "cert-manager.io"
_API_VERSION = f"{GROUP}/v1"
_USAGES = ("digital signature", "key encipherment", "server auth", "client auth")
_EVERYWHERE, _LOOPBACK = "localhost", "127.0.0.1"


def ca_secret_name(cluster: RayCluster) -> str:
    """The Secret of the cluster's own authority; a later cluster of that name has another."""
    return f"{cluster.metadata.name}-ca-secret-{cluster.metadata.uid[:8]}"


def root_issuer(cluster: RayCluster) -> Json:
    """Signs the authority."""
    return _issuer(cluster, _root_name(cluster), "selfsigned-issuer", {"selfSigned": {}})


def ca_certificate(cluster: RayCluster) -> Json:
    """The cluster's own authority, for ten years."""
    spec = {
        "secretName": ca_secret_name(cluster),
        "isCA": True,
        "commonName": f"ray-ca-{cluster.metadata.name}",
        "privateKey": {"algorithm": "RSA", "size": 4096},
        "duration": "87600h0m0s",
        "renewBefore": "720h0m0s",
        "usages": ["cert sign", "crl sign"],
        "issuerRef": _issued_by(_root_name(cluster)),
    }
    return _certificate(cluster, f"ray-ca-certificate-{cluster.metadata.name}", "ca-certificate", spec)


def ca_issuer(cluster: RayCluster) -> Json:
    """Signs the certificates of the pods."""
    return _issuer(cluster, _ca_name(cluster), "ca-issuer", {"ca": {"secretName": ca_secret_name(cluster)}})


def leaf_certificate(cluster: RayCluster, node_type: str, names: Iterable[str], addresses: Iterable[str]) -> Json:
    """The certificate that all heads, or all workers, share: for three months, for `names` and `addresses`."""
    spec = {
        "secretName": tls.secret_name(cluster, node_type),
        "duration": "2160h0m0s",
        "renewBefore": "360h0m0s",
        "dnsNames": sorted({_EVERYWHERE, *names}),
        "ipAddresses": sorted({_LOOPBACK, *addresses}),
        "usages": list(_USAGES),
        "issuerRef": _issued_by(_ca_name(cluster)),
    }
    return _certificate(cluster, leaf_name(cluster, node_type), f"{node_type}-certificate", spec)


def leaf_name(cluster: RayCluster, node_type: str) -> str:
    """Name of the Certificate of the heads or the workers."""
    return f"ray-{node_type}-cert-{cluster.metadata.name}"


def _root_name(cluster: RayCluster) -> str:
    return f"ray-selfsigned-issuer-{cluster.metadata.name}"


def _ca_name(cluster: RayCluster) -> str:
    return f"ray-ca-issuer-{cluster.metadata.name}"


def _issued_by(issuer: str) -> Json:
    return {"name": issuer, "kind": "Issuer", "group": GROUP}


def _issuer(cluster: RayCluster, name: str, component: str, spec: Json) -> Json:
    return {"apiVersion": _API_VERSION, "kind": "Issuer", "metadata": _metadata(cluster, name, component), "spec": spec}


def _certificate(cluster: RayCluster, name: str, component: str, spec: Json) -> Json:
    metadata = _metadata(cluster, name, component)
    return {"apiVersion": _API_VERSION, "kind": "Certificate", "metadata": metadata, "spec": spec}


def _metadata(cluster: RayCluster, name: str, component: str) -> Json:
    own = {labels.APP_NAME: labels.APP, labels.CREATED_BY: labels.CREATOR, labels.COMPONENT: component}
    return child_metadata(cluster, name, own)
