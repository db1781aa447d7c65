"""TLS of a judge's own client, which goes around Raybus' one."""

import base64
import ssl
import tempfile
from typing import Any


def client_context(kubeconfig: dict[str, Any]) -> ssl.SSLContext:
    """Trust and client certificate of a kubeconfig that holds them inline."""
    authority = base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    context = ssl.create_default_context(cadata=authority)
    user = kubeconfig["users"][0]["user"]
    with tempfile.NamedTemporaryFile("wb") as pair:
        pair.write(base64.b64decode(user["client-certificate-data"]))
        pair.write(b"\n" + base64.b64decode(user["client-key-data"]))
        pair.flush()
        context.load_cert_chain(pair.name)
    return context
