"""Configuration by the `kubernetes` package: kubeconfig files, exec plugins, client certificates, pods."""

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes.config import incluster_config

from raybus.kube.config import Access, ConfigError, load_credentials
from raybus.kube.credentials import load

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No kubeconfig and no pod around."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)


def kubeconfig(folder: Path, user: dict[str, object]) -> str:
    (folder / "ca.crt").write_text("CA")
    content = {
        "current-context": "one",
        "contexts": [
            {"name": "one", "context": {"cluster": "c", "user": "u"}},
            {"name": "two", "context": {"cluster": "d"}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": "https://one:6443/", "certificate-authority": "ca.crt"}},
            {"name": "d", "cluster": {"server": "https://two", "insecure-skip-tls-verify": True}},
        ],
        "users": [{"name": "u", "user": user}],
    }
    file = folder / "config"
    file.write_text(yaml.safe_dump(content))
    return str(file)


def certificate(folder: Path, end: datetime) -> dict[str, object]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "u")])
    cert = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, end - timedelta(days=365), end)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    pem = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "u.crt").write_bytes(cert)
    (folder / "u.key").write_bytes(key.private_bytes(*pem))
    return {"client-certificate": "u.crt", "client-key": "u.key"}


def plugin(folder: Path, status: str) -> dict[str, object]:
    script = folder / "plugin.py"
    script.write_text(status)
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [str(script)]}}


def test_files_are_found_beside_the_kubeconfig(tmp_path: Path) -> None:
    found = load(Access(kubeconfig=kubeconfig(tmp_path, certificate(tmp_path, NOW + timedelta(days=1)))), NOW)
    assert (found.server, found.ca) == ("https://one:6443", "CA")
    assert found.cert.startswith("-----BEGIN CERTIFICATE") and "PRIVATE KEY" in found.key
    assert found.verify and not found.authorization


def test_another_context_can_be_named(tmp_path: Path) -> None:
    found = load(Access(kubeconfig=kubeconfig(tmp_path, {"token": "t"}), context="two"), NOW)
    assert (found.server, found.verify, found.authorization) == ("https://two", False, "")


def test_an_expired_client_certificate_is_named_before_the_server_only_says_unauthorized(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, certificate(tmp_path, NOW - timedelta(hours=1)))
    with pytest.raises(ConfigError, match=f"client certificate in kubeconfig {config} expired on 2025-12-31 23:00"):
        load(Access(kubeconfig=config), NOW)


def test_an_exec_plugin_gives_a_token_and_its_end(tmp_path: Path) -> None:
    answer = (
        'print(\'\'\'{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", '
        '"status": {"token": "t1", "expirationTimestamp": "2026-01-01T01:00:00Z"}}\'\'\')'
    )
    found = load(Access(kubeconfig=kubeconfig(tmp_path, plugin(tmp_path, answer))), NOW)
    assert (found.authorization, found.expires) == ("Bearer t1", (NOW + timedelta(hours=1)).timestamp())


def test_an_exec_plugin_that_fails_is_quoted(tmp_path: Path) -> None:
    config = kubeconfig(tmp_path, plugin(tmp_path, "import sys; sys.exit('please log in')"))
    with pytest.raises(ConfigError, match="please log in"):
        load(Access(kubeconfig=config), NOW)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty|Invalid"),
        ("contexts: [", "cannot be used"),
        ("{current-context: a, contexts: [], clusters: [], users: []}", "name a"),
        ("just text", "cannot be used"),
    ],
)
def test_a_broken_kubeconfig_is_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "config"
    file.write_text(content)
    with pytest.raises(ConfigError, match=words) as caught:
        load(Access(kubeconfig=str(file)), NOW)
    assert str(file) in str(caught.value) and "\n" not in str(caught.value)


def test_an_unknown_context_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"context three cannot be used: .*three"):
        load(Access(kubeconfig=kubeconfig(tmp_path, {"token": "t"}), context="three"), NOW)


def test_inside_a_pod_the_token_is_read_from_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConfigError, match="no usable service account token"):
        load(Access(), NOW)
    (tmp_path / "token").write_text("t")
    (tmp_path / "ca.crt").write_text("CA")
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(tmp_path / "ca.crt"))
    found = load(Access(), NOW)
    assert (found.server, found.ca, found.token_file) == ("https://10.0.0.1:443", "CA", str(tmp_path / "token"))


async def test_the_child_process_answers_the_same(tmp_path: Path) -> None:
    found = await load_credentials(Access(kubeconfig=kubeconfig(tmp_path, {"token": "t"})))
    assert (found.server, found.authorization, found.ca) == ("https://one:6443", "Bearer t", "CA")


async def test_without_any_configuration_the_error_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match=r"no kubeconfig at ~/.kube/config, .*pass --kubeconfig or set KUBECONFIG"):
        await load_credentials(Access())
