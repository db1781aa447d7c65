"""Kubernetes Events out of notes: pure. Names are deterministic, so that a redelivered Decision doubles none."""

import hashlib
from collections.abc import Sequence

import msgspec

from raybus.api.decision import Json, Note
from raybus.api.kinds import BY_KIND
from raybus.api.messages import Root
from raybus.api.times import Instant, format_micro_time

MAX_NOTE = 1024
"""Bytes of a note that the API accepts (validation of events.k8s.io/v1)."""
MAX_NAMES = 8
"""Objects that a note names one by one; of the others it says how many they are."""
MAX_NAME = 253


def event(root: Root, note: Note, key: str, source: tuple[str, str], now: Instant) -> Json:
    """The Event of one note about `root`. `key`: what tells two occurrences of the same note apart (the view that the
    Decision was made on; of a refusal, which intent); `source`: (reporting controller, instance)."""
    text = shorten(note.text)
    body: Json = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": _name(root, note, key), "namespace": root.namespace},
        "eventTime": format_micro_time(now),
        "reportingController": source[0],
        "reportingInstance": source[1][:128],
        "action": note.action,
        "reason": note.reason.value,
        "type": note.type,
        "note": text,
        "regarding": {
            "apiVersion": BY_KIND[root.kind].api_version,
            "kind": root.kind,
            "namespace": root.namespace,
            "name": root.name,
            "uid": root.uid,
            "resourceVersion": root.resource_version,
        },
    }
    if note.related is not None:
        ref = note.related
        body["related"] = {
            "apiVersion": BY_KIND[ref.kind].api_version,
            "kind": ref.kind,
            "namespace": ref.namespace,
            "name": ref.name,
        }
    return body


def about(note: Note, names: Sequence[str]) -> Note:
    """`note` with `{names}` replaced by the objects that it speaks of."""
    shown = ", ".join(names[:MAX_NAMES])
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return msgspec.structs.replace(note, text=note.text.replace("{names}", shown + more))


def with_cause(note: Note, message: str) -> Note:
    """`note` with what the API server said."""
    return msgspec.structs.replace(note, text=f"{note.text}: {message}")


def shorten(text: str) -> str:
    """`text` cut to what the API accepts, at a whole character."""
    raw = text.encode()
    return text if len(raw) <= MAX_NOTE else raw[: MAX_NOTE - 3].decode(errors="ignore") + "…"


def _name(root: Root, note: Note, key: str) -> str:
    content = "\0".join((root.uid, note.type, note.reason, note.action, note.text, key))
    digest = hashlib.blake2s(content.encode(), digest_size=8).hexdigest()
    return f"{root.name[: MAX_NAME - len(digest) - 1].rstrip('.-')}.{digest}"
