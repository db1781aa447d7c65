"""The configuration of nats-server: one user per service, each with exactly the subjects of design §2 (ADR 0034).

Reading is limited by the filter subject, which is part of the API subject that makes a consumer or gets one message;
the forms without it (`CONSUMER.CREATE.<stream>`, `STREAM.MSG.GET`, bare `DIRECT.GET`) are permitted to nobody.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from raybus.bus.nats_bus import BUCKET
from raybus.bus.streams import STREAMS

MAX_PAYLOAD = 4 << 20
"""Largest message, bytes, headers included."""

_KEYS = "$KV.ctl."
_MARKER = "view.*.*.=.=.marker.fill"


class Role(NamedTuple):
    """What a service may do. `reads`, `writes`: subjects by stream; reading one's own writes is always included (a
    lost acknowledgement is cleared up by it). `never`: subjects taken out of `writes`. `leases`: services whose leases
    it may read. `replicated`: it has heart-beats and leases of its own. `works`: it acknowledges INTENT.
    `makes_streams`: it may create and change streams."""

    reads: Mapping[str, tuple[str, ...]]
    writes: Mapping[str, tuple[str, ...]]
    never: tuple[str, ...] = ()
    leases: tuple[str, ...] = ()
    replicated: bool = True
    works: bool = False
    makes_streams: bool = False


def _controller(*controllers: str, kinds: Iterable[str]) -> Role:
    return Role(
        reads={"VIEW": tuple(f"view.{name}.>" for name in controllers)},
        writes={
            "INTENT": tuple(f"intent.{name}.>" for name in controllers),
            "ASK": tuple(f"ask.{name}.>" for name in controllers),
            "TIMELINE": tuple(f"timeline.{kind}.>" for kind in kinds),
        },
    )


CONTROLLERS = ("cluster-ctl", "job-ctl", "serve-ctl")

ROLES: Mapping[str, Role] = {
    "watcher": Role(reads={"ASK": ("ask.>",)}, writes={"VIEW": ("view.>",)}, makes_streams=True),
    "cluster-ctl": _controller("cluster", kinds=("raycluster",)),
    "job-ctl": _controller("job", "cron", kinds=("rayjob", "raycronjob")),
    "serve-ctl": _controller("serve", kinds=("rayservice",)),
    "applier": Role(
        reads={"INTENT": ("intent.>",)},
        writes={"VIEW": ("view.>",), "TIMELINE": ("timeline.>",)},
        never=(_MARKER, "view.*.*.*.*.fact.*", "view.*.*.*.*.presence.*"),
        leases=CONTROLLERS,
        works=True,
    ),
    "prober": Role(
        reads={"ASK": ("ask.>",)},
        writes={"VIEW": ("view.*.*.*.*.fact.*",), "TIMELINE": ("timeline.>",)},
        leases=CONTROLLERS,
    ),
    "cli": Role(reads={"VIEW": ("view.>",), "TIMELINE": ("timeline.>",)}, writes={}, replicated=False),
}
"""One user per service; `cli` is the read-only user of the `raybus` command."""


class Server(NamedTuple):
    """Where nats-server listens and stores. `max_file_store`: bytes, well below the size of the volume (a full disk
    makes nats-server switch JetStream off). `name`: unique within a cluster of servers. `route_port`, `routes`: where
    it listens for the other servers of its cluster, and the addresses of all of them; 0 and none = it stands alone."""

    store_dir: PurePath
    port: int
    host: str = "127.0.0.1"
    max_file_store: int = 10 << 30
    name: str = "raybus"
    route_port: int = 0
    routes: tuple[str, ...] = ()


def server_config(server: Server, passwords: Mapping[str, str]) -> str:
    """The text of nats-server's configuration file. `passwords`: by service, keys of ROLES; services left out get no
    user. Raises KeyError for an unknown service."""
    config: dict[str, Any] = {
        "server_name": server.name,
        "host": server.host,
        "port": server.port,
        "max_payload": MAX_PAYLOAD,
        "jetstream": {
            "store_dir": str(server.store_dir),
            "max_file_store": server.max_file_store,
            "max_memory_store": 256 << 20,
        },
        "authorization": {
            "users": [
                {"user": service, "password": password, "permissions": permissions(service)}
                for service, password in passwords.items()
            ]
        },
    }
    if server.routes:
        listen = f"{server.host}:{server.route_port}"
        config["cluster"] = {"name": "raybus", "listen": listen, "routes": list(server.routes)}
    return json.dumps(config, indent=2) + "\n"


def permissions(service: str) -> dict[str, Any]:
    """nats-server's permissions of one service's user. Raises KeyError for an unknown service."""
    role = ROLES[service]
    publish = {"$JS.API.INFO", *(f"$JS.API.STREAM.INFO.{name}" for name in STREAMS)}
    for stream, subjects in role.reads.items():
        publish |= _reading(stream, subjects)
    for stream, subjects in role.writes.items():
        publish |= {*subjects, *_getting(stream, subjects)}
    if "VIEW" in role.writes and role.makes_streams:
        publish |= _reading("VIEW", role.writes["VIEW"])
    if role.works:
        publish.add("$JS.ACK.INTENT.>")
    if role.makes_streams:
        publish |= {f"$JS.API.STREAM.{verb}.{name}" for verb in ("CREATE", "UPDATE") for name in STREAMS}
    subscribe = {f"_INBOX.{service}.>"}
    for other in role.leases:
        publish |= _reading(BUCKET, (f"{_KEYS}lease.{other}.*",))
    if role.replicated:
        publish |= {f"heartbeat.{service}.*", f"{_KEYS}lease.{service}.*"}
        publish |= _reading(BUCKET, (f"{_KEYS}lease.{service}.*",))
        subscribe.add(f"heartbeat.{service}.*")
    allowed: dict[str, Any] = {"allow": sorted(publish)}
    if role.never:
        allowed["deny"] = sorted(role.never)
    return {"publish": allowed, "subscribe": {"allow": sorted(subscribe)}}


def _reading(stream: str, subjects: Iterable[str]) -> set[str]:
    """Follow or work off the subjects of a stream, and get single ones."""
    subjects = tuple(subjects)
    creates = {f"$JS.API.CONSUMER.CREATE.{stream}.*.{subject}" for subject in subjects}
    return {f"$JS.API.CONSUMER.MSG.NEXT.{stream}.*", *creates, *_getting(stream, subjects)}


def _getting(stream: str, subjects: Iterable[str]) -> set[str]:
    """Get the last message of single subjects."""
    return {f"$JS.API.DIRECT.GET.{stream}.{subject}" for subject in subjects}
