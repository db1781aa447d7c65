"""The submitter's image: how big it is, what is in it, and that it runs with nothing else around it."""

import datetime
import json
import os
import shutil
import signal
import ssl
import stat
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from raybus.dev.images.submitter import IMAGE, LIMIT, build
from raybus.testkit.fake_dashboard import FakeDashboard, TailConnection

HOST = "head.test"
USER = "65532:65532"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("image") / "submitter.tar"
    build(out)
    return out


@pytest.fixture(scope="module")
def rootfs(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The image's content, unpacked as a node does it."""
    root = tmp_path_factory.mktemp("rootfs")
    root.parent.chmod(0o755)
    root.chmod(0o755)
    with tarfile.open(archive) as image:
        stream = image.extractfile("blobs/" + manifest(archive)["layers"][0]["digest"].replace(":", "/"))
        assert stream is not None
        with tarfile.open(fileobj=stream) as layer:
            layer.extractall(root, filter="fully_trusted")
    (root / "etc/hosts").write_text(f"127.0.0.1 {HOST}\n")
    return root


def read_json(archive: Path, path: str) -> dict[str, Any]:
    with tarfile.open(archive) as image:
        stream = image.extractfile(path)
        assert stream is not None
        content: dict[str, Any] = json.load(stream)
        return content


def manifest(archive: Path) -> dict[str, Any]:
    [entry] = read_json(archive, "index.json")["manifests"]
    assert entry["annotations"]["io.containerd.image.name"] == IMAGE
    return read_json(archive, "blobs/" + entry["digest"].replace(":", "/"))


def run(rootfs: Path, *argv: str, **env: str) -> "subprocess.Popen[str]":
    """`/submitter` as the image's user, with the image for its whole world."""
    command = [shutil.which("chroot") or "chroot", f"--userspec={USER}", str(rootfs), "/submitter", *argv]
    if os.geteuid() != 0:
        command = [shutil.which("unshare") or "unshare", "--map-auto", "--map-root-user", *command]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_layers_are_at_most_ten_megabytes(archive: Path) -> None:
    [layer] = manifest(archive)["layers"]
    assert layer["mediaType"].endswith("tar+gzip")
    assert layer["size"] <= LIMIT == 10_000_000


def test_it_starts_like_kuberays(archive: Path) -> None:
    config = read_json(archive, "blobs/" + manifest(archive)["config"]["digest"].replace(":", "/"))["config"]
    assert (config["Entrypoint"], config["User"], config["WorkingDir"]) == (["/submitter"], USER, "/")
    assert "Cmd" not in config


def test_there_is_nothing_but_the_program(rootfs: Path) -> None:
    files = {str(path.relative_to(rootfs)): path for path in rootfs.rglob("*") if not path.is_dir()}
    executables = {name for name, path in files.items() if stat.S_ISREG(mode := path.lstat().st_mode) and mode & 0o111}
    programs = {name for name in executables if ".so" not in name}
    assert programs == {"submitter", "usr/bin/python3.11"}
    assert not [name for name in files if name.endswith(".py")]
    own = {name for name in files if "raybus" in name}
    assert {name.split("raybus/")[1].split("/")[0] for name in own} == {"submitter"}
    assert not [name for name, path in files.items() if path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID)]


def test_help(rootfs: Path) -> None:
    out, err = (process := run(rootfs, "--help")).communicate(timeout=30)
    assert (process.returncode, err) == (0, "")
    assert "--runtime-env-json" in out and "RAY_DASHBOARD_ADDRESS" in out


def test_wrong_usage(rootfs: Path) -> None:
    _, err = (process := run(rootfs, "--bogus")).communicate(timeout=30)
    assert (process.returncode, err) == (2, "ERROR -- unrecognized arguments: --bogus (see /submitter --help)\n")


def ended(dashboard: FakeDashboard) -> None:
    def tail(connection: TailConnection) -> None:
        connection.send("héllo\n".encode())
        dashboard.end("job-1")
        dashboard.log = "héllo\n"
        connection.close()

    dashboard.tails = [tail]


EXPECTED = """\
SUCC -- Job 'job-1' submitted successfully
INFO -- Tailing logs until the job finishes:
héllo
SUCC -- Job 'job-1' succeeded
"""


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_job_over_http(rootfs: Path, scheme: str) -> None:
    with FakeDashboard().serving() as dashboard:
        ended(dashboard)
        address = scheme + dashboard.address.replace("127.0.0.1", HOST)
        env = {"RAY_DASHBOARD_ADDRESS": address, "RAY_JOB_SUBMISSION_ID": "job-1"}
        out, err = (process := run(rootfs, "--", "echo héllo && true", **env)).communicate(timeout=30)
    assert (process.returncode, out, err) == (0, EXPECTED, "")
    assert dashboard.bodies == [{"entrypoint": "echo héllo && true", "submission_id": "job-1"}]


@pytest.fixture
def tls(rootfs: Path, tmp_path: Path) -> Iterator[ssl.SSLContext]:
    """A server's certificate for HOST, of an authority that is mounted over the image's bundle."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(HOST)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    form = serialization.PrivateFormat.PKCS8
    pair = tmp_path / "server.pem"
    pair.write_bytes(pem + key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair)
    bundle = rootfs / "etc/ssl/certs/ca-certificates.crt"
    before = bundle.read_bytes()
    assert before.count(b"BEGIN CERTIFICATE") > 100
    bundle.write_bytes(before + pem)
    yield context
    bundle.write_bytes(before)


def test_a_job_over_https(rootfs: Path, tls: ssl.SSLContext) -> None:
    with FakeDashboard().serving(tls) as dashboard:
        ended(dashboard)
        address = "https://" + dashboard.address.replace("127.0.0.1", HOST)
        env = {"RAY_DASHBOARD_ADDRESS": address, "RAY_JOB_SUBMISSION_ID": "job-1"}
        out, err = (process := run(rootfs, "--", "echo", **env)).communicate(timeout=30)
    assert (process.returncode, out, err) == (0, EXPECTED, "")


def test_a_certificate_for_another_name_is_not_accepted(rootfs: Path, tls: ssl.SSLContext) -> None:
    with FakeDashboard().serving(tls) as dashboard:
        env = {"RAY_DASHBOARD_ADDRESS": f"https://{dashboard.address}", "RAY_JOB_SUBMISSION_ID": "job-1"}
        process = run(rootfs, "--", "echo", **env)
        assert process.stdout is not None
        line = process.stdout.readline()
        process.terminate()
        process.communicate(timeout=10)
    assert "its certificate was not accepted: IP address mismatch" in line
    assert process.returncode == 128 + signal.SIGTERM
    assert dashboard.requests == []
