"""The streams of design §3 as a table; who makes them, and who only checks them."""

import asyncio
from collections.abc import Mapping
from typing import Any, NoReturn

import structlog

from raybus.api.names import PARTITIONS
from raybus.bus import jetstream as js
from raybus.bus.errors import ServerUnfit, StreamMismatch
from raybus.bus.nats_bus import BUCKET, NatsBus
from raybus.bus.port import BusError
from raybus.bus.saying import Saying

API_LEVEL = 5
"""The JetStream API level of nats-server 2.15; servers before 2.11 have none and ignore unknown settings silently."""
TIMELINE_BYTES = 512 << 20
"""Byte limit of TIMELINE, set aside by the server at once; beyond it the oldest entries go first."""
DAY = 24 * 3600
LOOK_EVERY = 1.0
"""Seconds between two looks whether all streams (still) exist."""
TRY_AGAIN = 0.2
"""Seconds between two attempts while the server is not ready."""

_COMMON: Mapping[str, Any] = {
    "storage": "file",
    "allow_direct": True,
    "metadata": {"raybus-partitions": str(PARTITIONS)},
}
# `discard` new: when the store is full, publishing fails; nothing that a decision needs is dropped in silence.
STREAMS: Mapping[str, Mapping[str, Any]] = {
    "VIEW": {
        **_COMMON,
        "subjects": ["view.>"],
        "retention": "limits",
        "compression": "s2",
        "max_msgs_per_subject": 1,
        "discard": "new",
        "allow_msg_ttl": True,
    },
    "INTENT": {
        **_COMMON,
        "subjects": ["intent.>"],
        "retention": "workqueue",
        "max_msgs_per_subject": 1,
        "discard": "new",
    },
    "ASK": {
        **_COMMON,
        "subjects": ["ask.>"],
        "retention": "limits",
        "max_msgs_per_subject": 1,
        "discard": "new",
        "allow_msg_ttl": True,
    },
    "TIMELINE": {
        **_COMMON,
        "subjects": ["timeline.>"],
        "retention": "limits",
        "compression": "s2",
        "max_msgs_per_subject": 1000,
        "max_age": js.ns(30 * DAY),
        "max_bytes": TIMELINE_BYTES,
        "discard": "old",
    },
    BUCKET: {
        **_COMMON,
        "subjects": ["$KV.ctl.>"],
        "retention": "limits",
        "max_msgs_per_subject": 1,
        "discard": "new",
        "allow_rollup_hdrs": True,
        "deny_delete": True,
    },
}

log = structlog.get_logger()


async def check_server(bus: NatsBus) -> None:
    """Wait until JetStream answers (a line in the log every few seconds says so), then look at its level.

    Raises ServerUnfit when the server is older than 2.15 or has JetStream switched off.
    """
    saying = Saying()
    while True:
        try:
            info = await bus.api("INFO", None, js.AccountInfo)
        except BusError as error:
            if bus.connected and not await bus.has_jetstream():
                raise ServerUnfit(
                    "nats-server runs without JetStream; start it with `jetstream {}`, see its log"
                ) from error
            saying.say("waiting for JetStream", why=str(error))
            continue
        if info.error is None:
            refuse_old_server(info)
            return
        if info.error.err_code not in js.PASSING:
            raise ServerUnfit(f"the bus has JetStream switched off for this user: {info.error.description}")
        saying.say("waiting for JetStream", why=info.error.description)
        await asyncio.sleep(TRY_AGAIN)


def refuse_old_server(info: js.AccountInfo) -> None:
    """Raises ServerUnfit when the API level is too low."""
    if info.api.level < API_LEVEL:
        raise ServerUnfit(
            f"nats-server is too old: JetStream API level {info.api.level or 'unknown'}, needed is {API_LEVEL} "
            "(nats-server 2.15 or newer; Debian's package is 2.9 and ignores settings that Raybus relies on)"
        )


async def ensure_streams(bus: NatsBus, replicas: int = 1) -> None:
    """Make the streams that are missing, bring others up to date, compare what the server returns with what was asked
    for. Only the watcher's bus user may (design §2). `replicas`: 1, or 3 on a cluster of servers. While the servers
    cannot do it (yet), tries again and says so in the log.

    Raises StreamMismatch.
    """
    saying = Saying()
    for name, wanted in STREAMS.items():
        while True:
            try:
                await _ensure(bus, name, {**wanted, "name": name, "num_replicas": replicas})
                break
            except StreamMismatch:
                raise
            except BusError as error:
                saying.say("waiting to make a stream", stream=name, why=str(error))
                await asyncio.sleep(TRY_AGAIN)


async def keep_streams(bus: NatsBus, replicas: int = 1) -> NoReturn:
    """Make missing streams anew as long as it runs: the store may be wiped while everything runs (design §1).

    Raises StreamMismatch when a stream is, or has become, something else.
    """
    while True:
        try:
            for name in STREAMS:
                info = await bus.api(f"STREAM.INFO.{name}", None, js.StreamInfo)
                if info.error is not None and info.error.err_code == js.STREAM_NOT_FOUND:
                    log.warning("making a missing stream", stream=name)
                    await _ensure(bus, name, {**STREAMS[name], "name": name, "num_replicas": replicas})
        except StreamMismatch:
            raise
        except BusError as error:
            log.warning("cannot look after the streams, trying again", why=str(error))
        await asyncio.sleep(LOOK_EVERY)


async def wait_for_streams(bus: NatsBus) -> None:
    """Wait until the watcher has made all streams (a line in the log every few seconds says so), then compare them.

    Raises StreamMismatch.
    """
    saying = Saying()
    for name, wanted in STREAMS.items():
        while True:
            try:
                info = await bus.api(f"STREAM.INFO.{name}", None, js.StreamInfo)
                problem = info.error.description if info.error else ""
            except BusError as error:
                problem = str(error)
            if not problem:
                break
            saying.say("waiting for a stream; the watcher makes it", stream=name, why=problem)
            await asyncio.sleep(TRY_AGAIN)
        compare(name, wanted, info.config)


def compare(name: str, wanted: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    """Raises StreamMismatch when `present` lacks anything of `wanted`; what the server adds by itself is left alone."""
    wrong = differences(wanted, present)
    if wrong:
        raise StreamMismatch(
            f"stream {name} of the bus does not fit this version of Raybus: {'; '.join(wrong)}. "
            "Is it another installation's bus? If the stream may go, delete it: the watcher makes and fills it anew"
        )


def differences(wanted: Mapping[str, Any], present: Mapping[str, Any]) -> list[str]:
    """What `present` lacks of `wanted`, a sentence each."""
    return [
        f"{key} is {_show(present.get(key))}, needed is {_show(value)}"
        for key, value in wanted.items()
        if not _covers(present.get(key), value)
    ]


def _covers(present: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        return isinstance(present, Mapping) and all(present.get(key) == value for key, value in wanted.items())
    return bool((present or False) == (wanted or False))


def _show(value: Any) -> str:
    return "unset" if value is None else str(value)


async def _ensure(bus: NatsBus, name: str, wanted: Mapping[str, Any]) -> None:
    """Make a stream, or change what differs. One that is there already is not offered to `CREATE`: the server checks
    whether there is room for its byte limit once more before it sees that it exists, and in a store that is nearly full
    there is not."""
    info = await bus.api(f"STREAM.INFO.{name}", None, js.StreamInfo)
    if info.error is not None and info.error.err_code == js.STREAM_NOT_FOUND:
        info = await bus.api(f"STREAM.CREATE.{name}", wanted, js.StreamInfo)
        if info.error is not None and info.error.err_code == js.STREAM_NAME_IN_USE:
            info = await bus.api(f"STREAM.INFO.{name}", None, js.StreamInfo)
    if info.error is None and differences(wanted, info.config):
        if info.config.get("metadata", {}).get("raybus-partitions") != str(PARTITIONS):
            compare(name, wanted, info.config)
        info = await bus.api(f"STREAM.UPDATE.{name}", wanted, js.StreamInfo)
    if info.error is not None and (info.error.code == 503 or info.error.err_code in js.PASSING | js.FULL):
        raise BusError(f"stream {name}: {info.error.description}")
    if info.error is not None:
        raise StreamMismatch(f"the bus refuses stream {name} as Raybus needs it: {info.error.description}")
    compare(name, wanted, info.config)
