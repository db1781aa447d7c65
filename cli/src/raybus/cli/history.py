"""Reading an object's timeline from the bus."""

from collections.abc import Sequence

import msgspec

from raybus.api.messages import TimelineEntry
from raybus.api.subjects import timeline
from raybus.bus import connect
from raybus.bus.port import Bus
from raybus.cli.place import Target, bus_settings

_decode = msgspec.json.Decoder(TimelineEntry).decode


async def read_timeline(bus: Bus, target: Target) -> list[TimelineEntry]:
    """Every entry about `target`, oldest first; [] when nothing was ever recorded. Raises BusError."""
    messages = await bus.history("TIMELINE", timeline(target.token, target.namespace, target.name))
    return [_decode(message.data) for message in messages]


async def read_timelines(cluster: str, targets: Sequence[Target]) -> list[list[TimelineEntry]]:
    """The timelines of several objects over one connection. Raises BusError, UsageError."""
    bus = await connect(bus_settings(cluster))
    try:
        return [await read_timeline(bus, target) for target in targets]
    finally:
        await bus.close()
