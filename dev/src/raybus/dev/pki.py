"""Certificates of one cluster, and kubeconfigs that carry them.

Elliptic curve keys: made in a millisecond where RSA takes a tenth of a second each.
"""

import base64
import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALIDITY = datetime.timedelta(days=3650)


@dataclass(frozen=True)
class KeyPair:
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True)
class Subject:
    """Who a certificate speaks for: user name, group, and the names and addresses it may serve."""

    user: str
    group: str | None = None
    hosts: tuple[str, ...] = ()


def ensure_authority(folder: Path) -> KeyPair:
    """The cluster's own certificate authority, made at its first use."""
    return _stored(folder, "ca") or _store(folder, "ca", _make_authority())


def ensure_certificate(folder: Path, name: str, subject: Subject) -> KeyPair:
    """Certificate `name` for `subject`, signed by the authority in `folder`; made anew when `subject` has changed."""
    authority = ensure_authority(folder)
    stored = _stored(folder, name)
    if stored is not None and _subject(stored.certificate) == subject:
        return stored
    return _store(folder, name, _sign(authority, subject))


def ensure_signing_key(folder: Path) -> tuple[Path, Path]:
    """Files of the private and the public key of service account tokens."""
    private, public = folder / "service-accounts.key", folder / "service-accounts.pub"
    if not public.exists():
        key = ec.generate_private_key(ec.SECP256R1())
        _write(private, _key_pem(key))
        _write(
            public,
            key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
        )
    return private, public


def signing_request(user: str) -> KeyPair:
    """A certificate signing request for `user` (in place of the certificate) and its new key."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(_name(Subject(user))).sign(key, hashes.SHA256())
    return KeyPair(request.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def kubeconfig(server: str, authority: bytes, client: KeyPair) -> str:
    """Text of a kubeconfig with everything inline, so that it can be copied anywhere on this machine."""

    def inline(data: bytes) -> str:
        return base64.b64encode(data).decode()

    cluster = {"server": server, "certificate-authority-data": inline(authority)}
    user = {"client-certificate-data": inline(client.certificate), "client-key-data": inline(client.key)}
    return yaml.safe_dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "raybus", "cluster": cluster}],
            "users": [{"name": "raybus", "user": user}],
            "contexts": [{"name": "raybus", "context": {"cluster": "raybus", "user": "raybus"}}],
            "current-context": "raybus",
        }
    )


def write_private(path: Path, text: str) -> Path:
    """Write a file that holds a key: readable by its owner only."""
    _write(path, text.encode())
    return path


def _make_authority() -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(Subject("raybus-dev-ca"))
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        crl_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
    certificate = (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def _sign(authority: KeyPair, subject: Subject) -> KeyPair:
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = serialization.load_pem_private_key(authority.key, None)
    assert isinstance(issuer_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    builder = (
        _builder(_name(subject), issuer.subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key()), critical=False)
    )
    if subject.hosts:
        builder = builder.add_extension(x509.SubjectAlternativeName(_hosts(subject.hosts)), critical=False)
    certificate = builder.sign(issuer_key, hashes.SHA256())
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _key_pem(key))


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + _VALIDITY)
    )


def _name(subject: Subject) -> x509.Name:
    group = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, subject.group)] if subject.group else []
    return x509.Name([*group, x509.NameAttribute(NameOID.COMMON_NAME, subject.user)])


def _hosts(hosts: Sequence[str]) -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = []
    for host in hosts:
        try:
            names.append(x509.IPAddress(ipaddress.ip_address(host)))
        except ValueError:
            names.append(x509.DNSName(host))
    return names


def _subject(certificate: bytes) -> Subject:
    """What a certificate was made for, to see whether it still fits."""
    parsed = x509.load_pem_x509_certificate(certificate)
    values = {attribute.oid: str(attribute.value) for attribute in parsed.subject}
    try:
        names = parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        hosts = tuple(str(name.value) for name in names)
    except x509.ExtensionNotFound:
        hosts = ()
    return Subject(values[NameOID.COMMON_NAME], values.get(NameOID.ORGANIZATION_NAME), hosts)


def _stored(folder: Path, name: str) -> KeyPair | None:
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    return KeyPair(certificate.read_bytes(), key.read_bytes()) if certificate.exists() and key.exists() else None


def _store(folder: Path, name: str, pair: KeyPair) -> KeyPair:
    _write(folder / f"{name}.key", pair.key)
    _write(folder / f"{name}.crt", pair.certificate)
    return pair


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o600)
    path.write_bytes(data)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
