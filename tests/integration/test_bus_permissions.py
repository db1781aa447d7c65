"""That the permissions of each service's bus user bite: what design §2 does not list is refused by the server."""

import asyncio
import re
from collections.abc import Awaitable, Callable

import pytest

from raybus.bus import NatsBus
from raybus.bus import jetstream as js
from raybus.bus.connection import Denied, Link
from raybus.bus.port import BusError, Loaded, StreamName
from raybus.testkit.nats_server import NatsServer

BusOf = Callable[[str], Awaitable[NatsBus]]
POD, FACT, MARKER = "view.cluster.1.ns.r.pod.p", "view.job.1.ns.r.fact.a", "view.cluster.1.=.=.marker.fill"

PUBLISH: list[tuple[str, StreamName, str]] = [
    ("cluster-ctl", "VIEW", POD),
    ("cluster-ctl", "INTENT", "intent.job.1.ns.r"),
    ("cluster-ctl", "ASK", "ask.job.1.ns.r"),
    ("cluster-ctl", "TIMELINE", "timeline.rayjob.ns.r"),
    ("job-ctl", "INTENT", "intent.cluster.1.ns.r"),
    ("serve-ctl", "INTENT", "intent.job.1.ns.r"),
    ("watcher", "INTENT", "intent.cluster.1.ns.r"),
    ("watcher", "ASK", "ask.job.1.ns.r"),
    ("watcher", "TIMELINE", "timeline.rayjob.ns.r"),
    ("applier", "INTENT", "intent.cluster.1.ns.r"),
    ("applier", "VIEW", FACT),
    ("applier", "VIEW", MARKER),
    ("applier", "VIEW", "view.job.1.ns.r.presence.Secret=2fx"),
    ("prober", "VIEW", POD),
    ("prober", "VIEW", "view.job.1.ns.r.result.applier"),
    ("prober", "INTENT", "intent.cluster.1.ns.r"),
    ("cli", "VIEW", POD),
    ("cli", "TIMELINE", "timeline.rayjob.ns.r"),
]
FOLLOW: list[tuple[str, StreamName, str]] = [
    ("cluster-ctl", "VIEW", "view.>"),
    ("cluster-ctl", "VIEW", "view.*.1.>"),
    ("cluster-ctl", "VIEW", "view.job.1.>"),
    ("cluster-ctl", "INTENT", "intent.cluster.1.>"),
    ("job-ctl", "VIEW", "view.cluster.1.>"),
    ("applier", "VIEW", "view.cluster.1.>"),
    ("applier", "ASK", "ask.cluster.1.>"),
    ("prober", "VIEW", "view.cluster.1.>"),
    ("prober", "INTENT", "intent.cluster.1.>"),
    ("watcher", "INTENT", "intent.cluster.1.>"),
    ("cli", "INTENT", "intent.cluster.1.>"),
    ("cli", "ASK", "ask.cluster.1.>"),
]
CALLS = [
    "STREAM.CREATE.VIEW",
    "STREAM.UPDATE.VIEW",
    "STREAM.DELETE.VIEW",
    "STREAM.PURGE.VIEW",
    "STREAM.MSG.GET.VIEW",
    "STREAM.MSG.DELETE.VIEW",
    "STREAM.NAMES",
    "DIRECT.GET.VIEW",
    "CONSUMER.CREATE.VIEW",
    "CONSUMER.CREATE.VIEW.mine",
    "CONSUMER.DURABLE.CREATE.VIEW.mine",
    "CONSUMER.NAMES.VIEW",
    "CONSUMER.LIST.VIEW",
    "CONSUMER.DELETE.INTENT.applier-1",
    "ACCOUNT.PURGE.VIEW",
]
SERVICES = ["watcher", "cluster-ctl", "job-ctl", "serve-ctl", "applier", "prober", "cli"]


@pytest.mark.parametrize(("user", "stream", "subject"), PUBLISH)
async def test_no_service_publishes_what_is_not_its_own(
    bus_of: BusOf, user: str, stream: StreamName, subject: str
) -> None:
    await bus_of("watcher")
    with pytest.raises(BusError, match=f"user '{user}' of the bus may not publish {re.escape(subject)}"):
        await (await bus_of(user)).put(stream, subject, b"x", {})


@pytest.mark.parametrize(("user", "stream", "subject"), FOLLOW)
async def test_no_service_follows_what_is_not_its_own(
    bus_of: BusOf, nats_server: NatsServer, user: str, stream: StreamName, subject: str
) -> None:
    await bus_of("watcher")
    with pytest.raises(Denied):
        await _as(nats_server, user, f"CONSUMER.CREATE.{stream}.mine.{subject}")


async def test_no_service_looks_around_or_touches_streams(bus_of: BusOf, nats_server: NatsServer) -> None:
    await bus_of("watcher")
    for user in SERVICES:
        link = await _link(nats_server, user)
        for call in CALLS:
            if user == "watcher" and call in ("STREAM.CREATE.VIEW", "STREAM.UPDATE.VIEW"):
                continue
            with pytest.raises(Denied):
                await link.request(f"{js.API}.{call}", b"", 5)
        link.close()


async def test_a_filter_in_the_body_that_is_wider_than_the_one_in_the_subject_is_refused(
    bus_of: BusOf, nats_server: NatsServer
) -> None:
    await bus_of("watcher")
    for wide in ({"filter_subject": "view.>"}, {"filter_subjects": ["view.>"]}, {}):
        config = {"name": "mine", "ack_policy": "none", "deliver_policy": "last_per_subject", **wide}
        body = js.encode({"stream_name": "VIEW", "config": config, "action": "create"})
        answer = await _as(nats_server, "cluster-ctl", "CONSUMER.CREATE.VIEW.mine.view.cluster.1.>", body)
        assert b'"error"' in answer
        assert b'"filter' not in answer


async def test_nobody_hears_or_speaks_for_others(bus_of: BusOf, nats_server: NatsServer) -> None:
    await bus_of("watcher")
    link = await _link(nats_server, "cluster-ctl")
    for subject in ("$KV.ctl.lease.job-ctl.1", "heartbeat.job-ctl.a", "$JS.ACK.INTENT.applier-1.1.1.1.1.0"):
        with pytest.raises(Denied):
            await link.request(subject, b"x", 5)
    for subject in ("_INBOX.>", "_INBOX.job-ctl.>", "heartbeat.>", "view.>", "$KV.ctl.>", ">"):
        link.subscribe(subject, _ignore)
        await link.round_trip(5)
        assert "Permissions Violation for Subscription" in link.refusal
        assert f'"{subject}"' in link.refusal
    link.close()


async def test_what_design_lists_is_permitted(bus_of: BusOf) -> None:
    watcher, cli = await bus_of("watcher"), await bus_of("cli")
    cluster, job, serve = [await bus_of(name) for name in ("cluster-ctl", "job-ctl", "serve-ctl")]
    applier, prober = await bus_of("applier"), await bus_of("prober")
    for subject in (POD, MARKER, "view.job.1.ns.r.presence.Secret=2fx"):
        await watcher.put("VIEW", subject, b"x", {}, expect=0)
    await applier.put("VIEW", POD, b"y", {}, expect=1)
    await applier.put("VIEW", "view.job.1.ns.r.result.applier", b"y", {}, expect=0)
    await prober.put("VIEW", FACT, b"y", {}, expect=0)
    for bus, controller, kind in (
        (cluster, "cluster", "raycluster"),
        (job, "job", "rayjob"),
        (job, "cron", "raycronjob"),
        (serve, "serve", "rayservice"),
    ):
        await bus.put("INTENT", f"intent.{controller}.1.ns.r", b"x", {})
        await bus.put("ASK", f"ask.{controller}.1.ns.r", b"x", {}, ttl=60)
        await bus.put("TIMELINE", f"timeline.{kind}.ns.r", b"x", {})
        await _loads(bus, "VIEW", f"view.{controller}.1.>")
        assert await applier.last("VIEW", POD) is not None
    for name, bus in zip(SERVICES, (watcher, cluster, job, serve, applier, prober), strict=False):
        await bus.put_key(f"lease.{name}.1", b"x", revision=0)
        await bus.announce(f"heartbeat.{name}.a", b"x")
    for name in ("cluster-ctl", "job-ctl", "serve-ctl"):
        assert (await applier.get_key(f"lease.{name}.1")).value == b"x"
        assert (await prober.get_key(f"lease.{name}.1")).value == b"x"
    await _loads(watcher, "VIEW", "view.>")
    await _loads(watcher, "ASK", "ask.>")
    await _loads(prober, "ASK", "ask.job.1.>")
    await _loads(cli, "VIEW", "view.job.1.ns.r.>")
    assert len(await cli.history("TIMELINE", "timeline.rayjob.ns.r")) == 1


async def _loads(bus: NatsBus, stream: StreamName, subject: str) -> None:
    async with asyncio.timeout(5):
        async for item in bus.follow(stream, [subject]):
            if isinstance(item, Loaded):
                return


async def _link(server: NatsServer, user: str) -> Link:
    link = Link(user)
    await link.open(server.settings(user), None)
    return link


async def _as(server: NatsServer, user: str, call: str, body: bytes = b"") -> bytes:
    link = await _link(server, user)
    try:
        return bytes((await link.request(f"{js.API}.{call}", body, 5)).data)
    finally:
        link.close()


def _ignore(_: object) -> None:
    return
