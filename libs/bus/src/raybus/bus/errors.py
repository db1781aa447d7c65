"""What stops a service at its start; each `str()` is the one line its user reads."""

from raybus.bus.port import BusError


class CannotConnect(BusError):
    """The server refuses the credentials, or the settings make no sense: trying again would not help."""


class ServerUnfit(BusError):
    """The server is too old, or has JetStream switched off."""


class StreamMismatch(BusError):
    """A stream on the server is not configured as this version of Raybus needs it."""
