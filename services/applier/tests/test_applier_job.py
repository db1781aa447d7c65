"""Reading Decisions: everything that is not one is Invalid, with a reason."""

import msgspec
import pytest

from raybus.api import subjects
from raybus.api.decision import Create, Ref
from raybus.api.messages import (
    H_EPOCH,
    H_RESULT_SEQ,
    H_ROOT_SEQ,
    H_SCHEMA,
    H_VIEW_SEQ,
    SCHEMA,
    Epoch,
    IntentMessage,
    Root,
)
from raybus.api.schema import OURS, Newer
from raybus.api.times import Instant
from raybus.applier.job import Invalid, read_job
from raybus.bus.port import Message

INTENT = subjects.intent("cluster", "ns", "c")
GOOD = {H_EPOCH: "1:2", H_VIEW_SEQ: "7", H_SCHEMA: SCHEMA}
ROOT = Root(kind="RayCluster", namespace="ns", name="c", uid="u", resource_version="1")


class Delivery:
    def __init__(self, data: bytes, headers: dict[str, str], subject: str = INTENT) -> None:
        self.message = Message(subject=subject, data=data, headers=headers, seq=1, stored_at=Instant(0))

    async def done(self) -> None: ...

    async def again(self, delay: float) -> None: ...

    async def in_progress(self) -> None: ...


def body(kind: str = "Pod", name: str = "c") -> bytes:
    root = msgspec.structs.replace(ROOT, name=name)
    return msgspec.json.encode(IntentMessage(root=root, intents=(Create(ref=Ref(kind, "ns", "p"), body={}),)))


def test_a_decision_is_read_with_its_fences() -> None:
    job = read_job(Delivery(body(), GOOD))
    assert (job.epoch, job.view_seq, job.key) == (Epoch(1, 2), 7, ("cluster", "ns", "c"))


def test_what_the_controller_knows_of_the_view_may_be_said_or_not() -> None:
    job = read_job(Delivery(body(), {**GOOD, H_ROOT_SEQ: "6", H_RESULT_SEQ: "0"}))
    assert (job.root_seq, job.no_result) == (6, True)
    job = read_job(Delivery(body(), GOOD))
    assert (job.root_seq, job.no_result) == (0, False)


@pytest.mark.parametrize(
    ("delivery", "words"),
    [
        (Delivery(b"\x00", GOOD), "no Decision"),
        (Delivery(b'{"root": 1}', GOOD), "no Decision"),
        (Delivery(body(), {}), r"no message version \(Schema: ''\)"),
        (Delivery(body(), {**GOOD, H_SCHEMA: "0.9"}), r"of version 0\.9, this release reads 1\.x"),
        (Delivery(body(), {**GOOD, H_EPOCH: "x"}), "must be numbers"),
        (Delivery(body(), {**GOOD, H_VIEW_SEQ: ""}), "must be numbers"),
        (Delivery(body(name="d"), GOOD), "the subject about RayCluster ns/c"),
        (Delivery(body(kind="Node"), GOOD), "no such kind: Node"),
        (Delivery(body(), GOOD, "intent.x"), "not an INTENT"),
        (Delivery(body(), GOOD, "intent.nobody.1.ns.c"), "no controller"),
    ],
)
def test_what_is_no_decision_says_why(delivery: Delivery, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        read_job(delivery)


@pytest.mark.parametrize(
    ("version", "data", "words"),
    [
        ("2.0", body(), r"version 2\.0, this release reads 1\.x: upgrade this service"),
        ("1.9", b'{"root": 1}', r"version 1\.9, which this release \(1\.0\) cannot read"),
        ("1.9", body(kind="Node"), "no such kind: Node"),
    ],
)
def test_what_only_a_later_release_can_read_is_told_apart(version: str, data: bytes, words: str) -> None:
    assert OURS == (1, 0)
    with pytest.raises(Newer, match=words):
        read_job(Delivery(data, {**GOOD, H_SCHEMA: version}))


def test_fields_and_reasons_of_a_later_minor_version_do_not_matter() -> None:
    message = msgspec.json.decode(body())
    note = {"type": "Normal", "reason": "InventedLater", "action": "a", "text": "t", "colour": "red"}
    message |= {"mood": "new", "notes": [note], "root": {**message["root"], "later": [1]}}
    job = read_job(Delivery(msgspec.json.encode(message), {**GOOD, H_SCHEMA: "1.9"}))
    assert job.message.notes[0].reason == "InventedLater"
    assert b'"reason":"InventedLater"' in msgspec.json.encode(job.message)
