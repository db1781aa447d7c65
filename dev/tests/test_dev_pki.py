"""Certificates are kept while they fit, and a kubeconfig carries all it needs."""

import base64
import stat
from pathlib import Path

import yaml
from cryptography import x509

from raybus.dev.pki import Subject, ensure_authority, ensure_certificate, ensure_signing_key, kubeconfig, write_private

SERVER = Subject("kube-apiserver", None, ("localhost", "10.96.0.1"))


def test_a_certificate_is_kept_until_its_subject_changes(tmp_path: Path) -> None:
    first = ensure_certificate(tmp_path, "apiserver", SERVER)
    assert ensure_certificate(tmp_path, "apiserver", SERVER) == first
    moved = ensure_certificate(tmp_path, "apiserver", Subject("kube-apiserver", None, ("10.97.0.1",)))
    assert moved != first


def test_certificates_are_signed_by_the_authority_of_the_cluster(tmp_path: Path) -> None:
    authority = x509.load_pem_x509_certificate(ensure_authority(tmp_path).certificate)
    issued = ensure_certificate(tmp_path, "admin", Subject("me", "system:masters"))
    x509.load_pem_x509_certificate(issued.certificate).verify_directly_issued_by(authority)


def test_a_kubeconfig_is_self_contained(tmp_path: Path) -> None:
    pair = ensure_certificate(tmp_path, "watcher", Subject("raybus:watcher"))
    parsed = yaml.safe_load(kubeconfig("https://a:1", b"authority", pair))
    assert parsed["clusters"][0]["cluster"]["server"] == "https://a:1"
    assert base64.b64decode(parsed["users"][0]["user"]["client-key-data"]) == pair.key


def test_keys_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    ensure_signing_key(tmp_path)
    ensure_authority(tmp_path)
    write_private(tmp_path / "admin.yaml", "secret")
    for name in ("service-accounts.key", "ca.key", "admin.yaml"):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
