"""Reading an object's timeline from the bus."""

from collections.abc import Sequence

import msgspec

from raybus.api import schema
from raybus.api.kinds import BY_TOKEN
from raybus.api.messages import Root, TimelineEntry
from raybus.api.subjects import timeline
from raybus.bus import connect
from raybus.bus.port import Bus, Message
from raybus.cli.place import Target, bus_settings

_decode = msgspec.json.Decoder(TimelineEntry).decode


async def read_timeline(bus: Bus, target: Target) -> list[TimelineEntry]:
    """Every entry about `target`, oldest first; [] when nothing was ever recorded. Raises BusError."""
    messages = await bus.history("TIMELINE", timeline(target.token, target.namespace, target.name))
    return [_entry(message, target) for message in messages]


def _entry(message: Message, target: Target) -> TimelineEntry:
    """What a message says; one of another release stands in its place and says so."""
    try:
        return schema.read(message.headers, message.data, _decode)
    except (schema.Newer, schema.Unreadable) as error:
        root = Root(
            kind=BY_TOKEN[target.token].kind, namespace=target.namespace, name=target.name, uid="", resource_version=""
        )
        return TimelineEntry(at=message.stored_at, service="?", root=root, did=(f"this entry is not shown: {error}",))


async def read_timelines(cluster: str, targets: Sequence[Target]) -> list[list[TimelineEntry]]:
    """The timelines of several objects over one connection. Raises BusError, UsageError."""
    bus = await connect(bus_settings(cluster))
    try:
        return [await read_timeline(bus, target) for target in targets]
    finally:
        await bus.close()
