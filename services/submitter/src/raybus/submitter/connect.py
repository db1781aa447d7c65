"""Opening a connection to the dashboard: TCP with keep-alive, TLS for https."""

import socket
import ssl

from raybus.submitter.address import Address

# A head that vanished sends nothing: the kernel asks after 30 s of silence and gives up after 3 unanswered probes.
_KEEP_ALIVE = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)


def connect(address: Address, timeout: float) -> socket.socket:
    """A connected (for https: verified) socket; each operation takes at most `timeout` seconds. Raises OSError."""
    plain = socket.create_connection((address.host, address.port), timeout)
    try:
        for level, option, value in _KEEP_ALIVE:
            plain.setsockopt(level, option, value)
        if not address.tls:
            return plain
        return ssl.create_default_context().wrap_socket(plain, server_hostname=address.host)
    except BaseException:
        plain.close()
        raise


def reason(error: BaseException) -> str:
    """An error of the network in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate was not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS failed: {error.reason or error}"
    if isinstance(error, socket.gaierror):
        return "its name does not resolve (yet)"
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error) or type(error).__name__
