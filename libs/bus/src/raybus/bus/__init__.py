"""Streams, ordered views, leases and partitions on NATS JetStream."""

from raybus.bus.nats_bus import NatsBus, connect
from raybus.bus.settings import BusSettings

__all__ = ["BusSettings", "NatsBus", "connect"]
