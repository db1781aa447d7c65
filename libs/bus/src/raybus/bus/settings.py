"""How a service reaches the bus."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class BusSettings:
    """`url`: one or more nats URLs, comma-separated. `user`: the service's bus user, which also names its inboxes.

    `name`: shown by the server's monitoring. `ca_file`: PEM file of the authority that signed the server's
    certificate, "" = the system's (used only when the server asks for TLS).
    """

    url: str = "nats://127.0.0.1:4222"
    user: str = ""
    password: str = field(default="", repr=False)
    name: str = ""
    ca_file: str = ""

    @property
    def servers(self) -> list[str]:
        """The single URLs."""
        return [part.strip() for part in self.url.split(",") if part.strip()]
