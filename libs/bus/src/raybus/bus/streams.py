"""The streams of design §3 as a table; who makes them, and who only checks them."""

import asyncio
from collections.abc import Mapping
from typing import Any, NoReturn

import structlog

from raybus.api.names import PARTITIONS
from raybus.api.schema import OURS
from raybus.bus import jetstream as js
from raybus.bus.errors import ServerUnfit, StreamMismatch
from raybus.bus.nats_bus import BUCKET, NatsBus
from raybus.bus.port import BusError, StoreFull
from raybus.bus.saying import Saying

API_LEVEL = 5
"""The JetStream API level of nats-server 2.15; servers before 2.11 have none and ignore unknown settings silently."""
TIMELINE_BYTES = 512 << 20
"""Byte limit of TIMELINE, set aside by the server at once; beyond it the oldest entries go first."""
LEAST_STORE = 2 * TIMELINE_BYTES
"""Bytes that JetStream should have at least: TIMELINE's, and as much for all other streams."""
DAY = 24 * 3600
LOOK_EVERY = 1.0
"""Seconds between two looks whether all streams (still) exist."""
TRY_AGAIN = 0.2
"""Seconds between two attempts while the server is not ready."""

CLUSTER = "raybus-cluster"
"""Metadata of a stream: which Kubernetes cluster it is about, the UID of the namespace `kube-system` (ADR 0106)."""

_COMMON: Mapping[str, Any] = {
    "storage": "file",
    "allow_direct": True,
    "metadata": {"raybus-partitions": str(PARTITIONS), "raybus-schema": str(OURS.major)},
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


async def ensure_streams(bus: NatsBus, cluster: str, replicas: int = 1) -> None:
    """Make the streams that are missing, bring others up to date, compare what the server returns with what was asked
    for. Only the watcher's bus user may (design §2). `cluster`: see CLUSTER. `replicas`: 1, or 3 on a cluster of
    servers. While the servers cannot do it (yet), tries again and says so in the log.

    Raises StreamMismatch: before anything is touched when one of them is not ours, or when the server refuses one;
    ServerUnfit when it has no room for one.
    """
    saying = Saying()
    for name in STREAMS:
        info = await _info(bus, name)
        if info is not None:
            _refuse_foreign(name, _wanted(name, cluster, replicas), info.config)
    for name in STREAMS:
        while True:
            try:
                await _ensure(bus, name, _wanted(name, cluster, replicas))
                break
            except StreamMismatch:
                raise
            except StoreFull as error:
                least = f"{LEAST_STORE >> 20} MB (max_file_store)"
                raise ServerUnfit(f"{error}; give JetStream at least {least}, on a volume that has them") from error
            except BusError as error:
                saying.say("waiting to make a stream", stream=name, why=str(error))
                await asyncio.sleep(TRY_AGAIN)


async def keep_streams(bus: NatsBus, cluster: str, replicas: int = 1) -> NoReturn:
    """Make missing streams anew as long as it runs: the store may be wiped while everything runs (design §1).

    Raises StreamMismatch when a stream is, or has become, something else.
    """
    while True:
        try:
            for name in STREAMS:
                info = await bus.api(f"STREAM.INFO.{name}", None, js.StreamInfo)
                if info.error is None:
                    _refuse_foreign(name, _wanted(name, cluster, replicas), info.config)
                elif info.error.err_code == js.STREAM_NOT_FOUND:
                    log.warning("making a missing stream", stream=name)
                    await _ensure(bus, name, _wanted(name, cluster, replicas))
        except StreamMismatch:
            raise
        except BusError as error:
            log.warning("cannot look after the streams, trying again", why=str(error))
        await asyncio.sleep(LOOK_EVERY)


async def keep_to_cluster(bus: NatsBus, cluster: str) -> NoReturn:
    """Look again and again whether the bus is still about this cluster: it may be wiped and taken by another one.

    Raises StreamMismatch when it is not.
    """
    while True:
        await asyncio.sleep(LOOK_EVERY)
        try:
            info = await bus.api("STREAM.INFO.VIEW", None, js.StreamInfo)
        except BusError as error:
            log.debug("cannot look at stream VIEW", why=str(error))
            continue
        if info.error is None:
            _refuse_foreign("VIEW", _wanted("VIEW", cluster, 1), info.config)


async def wait_for_streams(bus: NatsBus, cluster: str | None = None) -> None:
    """Wait until the watcher has made all streams (a line in the log every few seconds says so), then compare them.
    `cluster`: see CLUSTER; None for a service that has nothing to do with Kubernetes.

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
        if cluster is not None:
            _refuse_foreign(name, _wanted(name, cluster, 1), info.config)
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


def _wanted(name: str, cluster: str, replicas: int) -> dict[str, Any]:
    metadata = {**STREAMS[name]["metadata"], CLUSTER: cluster}
    return {**STREAMS[name], "name": name, "num_replicas": replicas, "metadata": metadata}


def _refuse_foreign(name: str, wanted: Mapping[str, Any], present: Mapping[str, Any]) -> None:
    """Raises StreamMismatch when a stream was made for another cluster, or by a Raybus that this one cannot live
    beside: such a stream is not to be brought up to date."""
    marks, ours = present.get("metadata") or {}, wanted["metadata"]
    if CLUSTER in marks and marks[CLUSTER] != ours[CLUSTER]:
        raise StreamMismatch(
            f"stream {name} of this bus is about another Kubernetes cluster (UID of its kube-system: {marks[CLUSTER]}, "
            f"ours: {ours[CLUSTER]}): give each cluster a bus of its own"
        )
    if any(marks.get(mark) != value for mark, value in ours.items()):
        compare(name, wanted, present)


async def _info(bus: NatsBus, name: str) -> js.StreamInfo | None:
    """A stream as it is, None if there is none; waits for an answer."""
    saying = Saying()
    while True:
        try:
            info = await bus.api(f"STREAM.INFO.{name}", None, js.StreamInfo)
            if info.error is None:
                return info
            if info.error.err_code == js.STREAM_NOT_FOUND:
                return None
            why = info.error.description
        except BusError as error:
            why = str(error)
        saying.say("waiting to look at a stream", stream=name, why=why)
        await asyncio.sleep(TRY_AGAIN)


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
        _refuse_foreign(name, wanted, info.config)
        info = await bus.api(f"STREAM.UPDATE.{name}", wanted, js.StreamInfo)
    if info.error is not None and (info.error.code == 503 or info.error.err_code in js.PASSING):
        raise BusError(f"stream {name}: {info.error.description}")
    if info.error is not None and info.error.err_code in js.FULL:
        raise StoreFull(f"the bus has no room for stream {name}: {info.error.description}")
    if info.error is not None:
        raise StreamMismatch(f"the bus refuses stream {name} as Raybus needs it: {info.error.description}")
    compare(name, wanted, info.config)
