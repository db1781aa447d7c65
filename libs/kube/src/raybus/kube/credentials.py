"""The child process that reads the Kubernetes configuration with the `kubernetes` package: prints `config.Answer`.

Usage: python -m raybus.kube.credentials KUBECONFIG CONTEXT (each may be empty).
"""

import logging
import os
import sys
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from typing import Any

import msgspec
import yaml
from cryptography import x509

from raybus.kube.config import Access, Answer, ConfigError, Credentials
from raybus.kube.errors import shorten

_DEFAULT = "~/.kube/config"


def _bare(name: str) -> Any:
    """A package that its own `__init__` is not run for."""
    spec = find_spec(name)
    assert spec is not None
    module = sys.modules[name] = module_from_spec(spec)
    return module


def _load_package() -> tuple[Any, Any, Any]:
    """`kubernetes.config` without the models of the whole API, which `kubernetes` imports on its own: half of
    the CPU time that this takes (ADR 0035)."""
    if "kubernetes" not in sys.modules:
        _bare("kubernetes")
        client = _bare("kubernetes.client")
        client.Configuration = import_module("kubernetes.client.configuration").Configuration
        client.ApiClient = object
    config = import_module("kubernetes.config")
    return config.incluster_config, config.kube_config, config.ConfigException


_in_pod, _files, ConfigException = _load_package()


def load(access: Access, now: datetime) -> Credentials:
    """Credentials from the first source there is (see `Access`). Raises ConfigError with one sentence."""
    files = access.kubeconfig or os.environ.get("KUBECONFIG", "")
    if not files and os.environ.get(_in_pod.SERVICE_HOST_ENV_NAME):
        return _in_cluster()
    files = files or _DEFAULT
    if not any(Path(name).expanduser().exists() for name in files.split(os.pathsep) if name):
        raise ConfigError(
            f"no kubeconfig at {files}, and this is no pod of a cluster: pass --kubeconfig or set KUBECONFIG"
        )
    return _from_files(files, access.context, now)


def _in_cluster() -> Credentials:
    configuration = _files.Configuration()
    try:
        _in_pod.load_incluster_config(configuration)
    except (ConfigException, OSError) as error:
        raise ConfigError(
            f"this pod has no usable service account token ({error}): set automountServiceAccountToken on its pod"
        ) from error
    return Credentials(
        server=configuration.host,
        source="the pod's service account",
        token_file=_in_pod.SERVICE_TOKEN_FILENAME,
        ca=_read(configuration.ssl_ca_cert),
    )


def _from_files(files: str, context: str, now: datetime) -> Credentials:
    complaints = _Complaints()
    logging.getLogger().addHandler(complaints)
    source = f"kubeconfig {files}" + (f", context {context}" if context else "")
    configuration = _files.Configuration()
    try:
        merged = _files.KubeConfigMerger(files).config
        loader = _files.KubeConfigLoader(merged, active_context=context or None, config_base_path=None)
        loader.load_and_set(configuration)
    except (ConfigException, OSError, yaml.YAMLError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise ConfigError(f"{source} cannot be used: {shorten(str(error))}") from error
    if complaints.texts:
        # The package logs what an exec plugin said and goes on without credentials.
        raise ConfigError(f"{source} cannot be used: {shorten('; '.join(complaints.texts))}")
    cert = _read(configuration.cert_file)
    _refuse_expired(cert, source, now)
    expiry = getattr(loader, "expiry", None)
    return Credentials(
        server=configuration.host,
        source=source,
        authorization=configuration.api_key.get("BearerToken", ""),
        expires=expiry.timestamp() if expiry else 0.0,
        ca=_read(configuration.ssl_ca_cert),
        cert=cert,
        key=_read(configuration.key_file),
        verify=bool(configuration.verify_ssl),
        tls_server_name=configuration.tls_server_name or "",
        proxy=configuration.proxy or "",
    )


def _refuse_expired(cert: str, source: str, now: datetime) -> None:
    """The API server would only say "Unauthorized"."""
    if cert and (end := x509.load_pem_x509_certificate(cert.encode()).not_valid_after_utc) < now:
        raise ConfigError(f"the client certificate in {source} expired on {end:%Y-%m-%d %H:%M} UTC: renew it")


def _read(file: str | None) -> str:
    return Path(file).read_text() if file else ""


class _Complaints(logging.Handler):
    """Collects what the package logs as errors."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(record.getMessage())


def main() -> None:
    """Print the answer; the exit code is 0 also for an error, which the answer contains."""
    access = Access(kubeconfig=sys.argv[1], context=sys.argv[2])
    try:
        answer = Answer(credentials=load(access, datetime.now(UTC)))
    except ConfigError as error:
        answer = Answer(error=str(error))
    sys.stdout.buffer.write(msgspec.json.encode(answer))


if __name__ == "__main__":
    main()
