"""Subjects of the streams VIEW, INTENT, ASK and TIMELINE, of leases and of heart-beats (design §3).

Everything that a decision about one custom resource (the *root*) depends on lies under
`view.<controller>.<partition>.<namespace>.<root>.`; the tokens are encoded by `names.encode_token`.
"""

from typing import NamedTuple

from raybus.api.names import decode_token, encode_token, partition_of

CONTROLLERS = ("cluster", "job", "cron", "serve")

FACT = "fact"
"""View kind of what the prober learned; name = the ask's id."""
RESULT = "result"
"""View kind of what the applier was refused; name = `applier`."""
PRESENCE = "presence"
"""View kind of a needed object that no watch selects; name = `<Kind>/<name>`."""
MARKER = "marker"


class ViewKey(NamedTuple):
    """The parts of a VIEW subject; `kind` is a token of `kinds.KINDS`, or FACT, RESULT, PRESENCE, MARKER."""

    controller: str
    partition: int
    namespace: str
    root: str
    kind: str
    name: str


def root_token(controller: str, namespace: str, root: str) -> str:
    """`<controller>.<partition>.<namespace>.<root>`: what names a root in each of the three streams."""
    return f"{controller}.{partition_of(namespace, root)}.{encode_token(namespace)}.{encode_token(root)}"


def view(controller: str, namespace: str, root: str, kind: str, name: str) -> str:
    """The subject of one object in one root's view."""
    return f"view.{root_token(controller, namespace, root)}.{kind}.{encode_token(name)}"


def view_of_root(controller: str, namespace: str, root: str) -> str:
    """Filter of all that lies in one root's view."""
    return f"view.{root_token(controller, namespace, root)}.>"


def view_partition(controller: str, partition: int) -> str:
    """Filter of one partition of a controller's view."""
    return f"view.{controller}.{partition}.>"


def fill_marker(controller: str, partition: int) -> str:
    """The subject of the marker that ends a full fill; `=` alone is no encoded name (design §3)."""
    return f"view.{controller}.{partition}.=.=.{MARKER}.fill"


def intent(controller: str, namespace: str, root: str) -> str:
    """The subject of the decision about one root; the newest replaces an older one."""
    return f"intent.{root_token(controller, namespace, root)}"


def ask(controller: str, namespace: str, root: str) -> str:
    """The subject of what one root asks of Ray, and of the objects it needs to know about."""
    return f"ask.{root_token(controller, namespace, root)}"


def partition_filter(stream: str, controller: str, partition: int) -> str:
    """Filter of one partition of `stream` (`view`, `intent` or `ask`), for all controllers with `*`."""
    return f"{stream}.{controller}.{partition}.>"


def timeline(kind: str, namespace: str, name: str) -> str:
    """The subject of what happened to one custom resource; `kind` is its token (`rayjob`)."""
    return f"timeline.{kind}.{encode_token(namespace)}.{encode_token(name)}"


def lease_key(service: str, partition: int) -> str:
    """Key in the KV bucket `ctl` that says who owns a partition."""
    return f"lease.{service}.{partition}"


def heartbeat(service: str, replica: str) -> str:
    """Core NATS subject of a replica's heart-beats; `replica` may be `*`."""
    return f"heartbeat.{service}.{replica}"


def parse_view(subject: str) -> ViewKey:
    """The inverse of `view`. The marker's namespace and root stay `=`. Raises ValueError for any other subject."""
    parts = subject.split(".")
    if len(parts) != 7 or parts[0] != "view":
        raise ValueError(f"not a VIEW subject: {subject!r}")
    _, controller, partition, namespace, root, kind, name = parts
    if namespace == "=":
        return ViewKey(controller, int(partition), "=", "=", kind, name)
    tokens = decode_token(namespace), decode_token(root), decode_token(name)
    return ViewKey(controller, int(partition), tokens[0], tokens[1], kind, tokens[2])


def parse_root(subject: str) -> tuple[str, int, str, str]:
    """(controller, partition, namespace, root) of an INTENT or ASK subject. Raises ValueError for any other."""
    parts = subject.split(".")
    if len(parts) != 5 or parts[0] not in ("intent", "ask"):
        raise ValueError(f"not an INTENT or ASK subject: {subject!r}")
    return parts[1], int(parts[2]), decode_token(parts[3]), decode_token(parts[4])
