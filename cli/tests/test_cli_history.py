"""A timeline in which some entries are of another release."""

import asyncio

import msgspec

from raybus.api.messages import H_SCHEMA, SCHEMA, Root, TimelineEntry
from raybus.api.times import Instant
from raybus.cli.history import read_timeline
from raybus.cli.place import Target
from raybus.testkit.fake_bus import BusServer

ROOT = Root(kind="RayJob", namespace="ns", name="j", uid="u", resource_version="1")


def test_an_entry_of_another_release_stands_in_its_place_and_says_so() -> None:
    async def main() -> list[TimelineEntry]:
        bus = BusServer(lambda: Instant(5.0)).connect()
        entry = msgspec.json.encode(TimelineEntry(at=Instant(1.0), service="job-ctl", root=ROOT, did=("did it",)))
        for version, body in ((SCHEMA, entry), ("2.0", b"\x00"), ("1.9", entry[:-1] + b',"later":1}'), (SCHEMA, b"[")):
            await bus.put("TIMELINE", "timeline.rayjob.ns.j", body, {H_SCHEMA: version})
        return await read_timeline(bus, Target("rayjob", "ns", "j"))

    found = asyncio.run(main())
    assert [entry.did[0][:30] for entry in found] == [
        "did it",
        "this entry is not shown: it is",
        "did it",
        found[3].did[0][:30],
    ]
    assert "of version 2.0" in found[1].did[0] and found[1].at == 5.0
    assert found[3].did[0].startswith("this entry is not shown: ")
